"""Reads a request's body, up to a limit."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from proxy.errors import BodyTooLarge, ClientGone, ShuttingDown

LIMIT = 64 * 1024 * 1024
"""Bytes."""


async def read_body(request: Request) -> bytes:
    """The whole body.

    Raises :class:`BodyTooLarge`; :class:`ClientGone` when the client left before its end; :class:`ShuttingDown`.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > LIMIT:
                raise BodyTooLarge(f"The request's body is larger than {LIMIT} bytes.")
            parts.append(part)
    except ClientDisconnect as exc:
        raise ClientGone("The client closed the connection.") from exc
    except asyncio.CancelledError as exc:
        raise ShuttingDown("The proxy is shutting down; the request's body had not come.") from exc
    return b"".join(parts)
