"""Reads a request's body, up to a limit: whole, or in pieces that are passed on as they come."""

import asyncio
from collections.abc import AsyncGenerator, Callable, MutableMapping
from typing import Any

from proxy.disconnect import Receive
from proxy.errors import BodyTooLarge, ClientGone, ShuttingDown
from proxy.headers import RawHeaders, value_of
from proxy.upload import Upload

SMALL = 256 * 1024
"""Bytes; a body of at most this length is not worth a connection of its own."""


class Body:
    """The body of one request; ``limit`` is in bytes. To be read once.

    ``hold`` is told of all bytes that are kept, and may raise.

    Raises :class:`BodyTooLarge` at once when the request says so itself, else while it is read.
    """

    def __init__(self, headers: RawHeaders, receive: Receive, limit: int, hold: Callable[[int], None]) -> None:
        given = value_of(headers, b"content-length")
        self.length = int(given) if given is not None and given.isdecimal() else None
        """Bytes; ``None`` when it is known only at the end."""
        self.is_empty = not self.length and value_of(headers, b"transfer-encoding") is None
        self._limit = limit
        self._receive = receive
        self._hold = hold
        self._was_read = asyncio.Event()
        if (self.length or 0) > limit:
            raise self._too_large()

    async def whole(self) -> bytes:
        """All of it; also raises :class:`ClientGone` when the client left before its end, and :class:`ShuttingDown`."""
        try:
            parts = []
            async for part in self.parts():
                self._hold(len(part))
                parts.append(part)
            return b"".join(parts)
        except asyncio.CancelledError as exc:
            raise ShuttingDown("The proxy is shutting down; the request's body had not come.") from exc

    def upload(self) -> Upload:
        """To be passed on as it comes; the parts raise what :meth:`whole` does."""
        return Upload(self.parts(), self.length)

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """What has come since the last part."""
        size = 0
        try:
            more = True
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone("The client closed the connection.")
                part = message.get("body", b"")
                size += len(part)
                if size > self._limit:
                    raise self._too_large()
                more = message.get("more_body", False)
                if part:
                    yield part
        finally:
            self._was_read.set()

    async def receive(self) -> MutableMapping[str, Any]:
        """What the client does after its body: ASGI's ``receive``, for one who must not take a part of the body."""
        if not self.is_empty:
            await self._was_read.wait()
        return await self._receive()

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"The request's body is larger than {self._limit} bytes.")


async def read_body(headers: RawHeaders, receive: Receive, limit: int, hold: Callable[[int], None]) -> bytes:
    """The whole body, of at most ``limit`` bytes."""
    return await Body(headers, receive, limit, hold).whole()
