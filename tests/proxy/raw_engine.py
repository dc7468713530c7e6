"""An engine that answers byte by byte, for what the fake one is too well-behaved."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

PROBES = (b"GET /health ", b"GET /version ", b"GET /v1/models ", b"GET /metrics ")
"""What the proxy asks of its own accord."""


class RawEngine:
    """An engine that deals with a connection as a script says, and answers the proxy's own questions."""

    role, pool = "aggregated", ""
    bootstrap_url = None

    def __init__(
        self,
        script: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        answers: tuple[bytes, ...] = PROBES,
    ) -> None:
        """``answers``: beginnings of requests that are answered without asking the script."""
        self._answers = answers
        self.script = script
        self.head = b""
        self.done = asyncio.Event()
        """Set when the script has ended."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(self._answers):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        else:
            self.head = head
            await self.script(reader, writer)
            self.done.set()
        writer.close()
