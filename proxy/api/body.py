"""Reads a request's body, up to a limit."""

from starlette.requests import ClientDisconnect, Request

from proxy.errors import BodyTooLarge, ClientGone

LIMIT = 64 * 1024 * 1024
"""Bytes."""


async def read_body(request: Request) -> bytes:
    """The whole body; raises :class:`BodyTooLarge`, or :class:`ClientGone` when the client left before its end."""
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
    return b"".join(parts)
