"""Just enough HTTP/1.1 on a real socket to answer byte by byte, stall, cut, and see a client leave."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import formatdate

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    """Names in lower case."""
    body: bytes
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client closed the connection before it had the answer."""

    def header(self, name: str) -> str | None:
        """A header's first value."""
        return next((value for key, value in self.headers if key == name), None)


class Cut(Exception):
    """Raised by an answer to break the connection off."""


class Reset(Cut):
    """The same, so that the other side sees a reset and no end."""


class Reply:
    """Writes one answer."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """An answer of known length."""
        kind = {"content-type": "application/json"} if body else {}
        all_headers = {**kind, **(headers or {}), "content-length": str(len(body))}
        await self._write(_head(status, all_headers) + body)

    async def half(self, body: bytes) -> None:
        """The first half of an answer."""
        head = _head(200, {"content-type": "application/json", "content-length": str(len(body))})
        await self._write(head + body[: len(body) // 2])

    async def start(self, headers: dict[str, str]) -> None:
        """Status 200 and headers of an answer that comes in chunks."""
        await self._write(_head(200, {**headers, "transfer-encoding": "chunked"}))

    async def chunk(self, data: bytes) -> None:
        """One chunk; an empty one ends the answer."""
        await self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Answerer = Callable[[Seen, Reply], Awaitable[None]]


class WireServer:
    """Serves an answerer on an address; ``port`` 0 takes a free one."""

    def __init__(self, answerer: Answerer, host: str, port: int) -> None:
        self._answerer = answerer
        self._host = host
        self.port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""

        def protocol() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(_Reader(), self._connected)

        self._server = await asyncio.get_running_loop().create_server(protocol, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and break every connection off."""
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        self._writers.add(writer)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: "_Reader", writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except Reset:
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except (Cut, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _one(self, reader: "_Reader", writer: asyncio.StreamWriter) -> bool:
        seen = await _read(reader)
        answering = asyncio.ensure_future(self._answerer(seen, Reply(writer)))
        leaving = asyncio.create_task(reader.gone.wait())
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                seen.left.set()
                return False
            try:
                answering.result()
            except ConnectionError:
                seen.left.set()
                raise
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.wait((answering, leaving))
        return True


class _Reader(asyncio.StreamReader):
    def __init__(self) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
        f"date: {formatdate(usegmt=True)}",
        "server: uvicorn",
    ]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "vary: Origin", "", ""]).encode("latin-1")


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *lines = head.split("\r\n")[:-2]
    method, path, _ = request.split(" ")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    if "transfer-encoding" in dict(headers):
        return Seen(method, path, headers, await _chunks(reader))
    length = int(dict(headers).get("content-length", 0))
    return Seen(method, path, headers, await reader.readexactly(length))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body
