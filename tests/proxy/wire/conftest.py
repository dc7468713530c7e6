"""A server that does to each connection what a script says, and a client of it."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import pytest
import uvloop

from proxy.upload import Upload
from proxy.wire.client import Answer, Client


class Peer:
    """One connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.gone = asyncio.Event()
        """Set when the client has closed the connection, or the script's end has."""

    async def request(self) -> bytes:
        """The next request's head and body."""
        head = await self.head()
        lines = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2]]
        length = dict(lines).get(b"content-length", b"0")
        return head + await self._reader.readexactly(int(length))

    async def head(self) -> bytes:
        """The next request's head."""
        return await self._reader.readuntil(b"\r\n\r\n")

    async def until(self, end: bytes) -> bytes:
        """What comes, up to and with these bytes."""
        return await self._reader.readuntil(end)

    async def say(self, data: bytes) -> None:
        """Send, as one piece where the network lets it."""
        self._writer.write(data)
        await self._writer.drain()

    async def until_gone(self) -> None:
        """Wait for the client to close, whatever it sends before."""
        while await self._reader.read(65536):
            pass

    def reset(self) -> None:
        """Break the connection off, so that the client sees a reset and no end."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close properly."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


Script = Callable[[Peer], Awaitable[None]]


class Server:
    """Runs its scripts, one per connection in their order; the last one serves all further connections."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.scripts: list[Script] = []
        self.peers: list[Peer] = []
        """All that have connected, oldest first."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Follow the script of one connection, then close it."""
        peer = Peer(reader, writer)
        self.peers.append(peer)
        script = self.scripts[min(len(self.peers), len(self.scripts)) - 1]
        try:
            await script(peer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has closed the connection
        finally:
            peer.gone.set()
            writer.transport.abort()


class Listen(Protocol):
    """Starts a server with its scripts."""

    async def __call__(
        self, *scripts: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> Server: ...


class Ask(Protocol):
    """Opens an answer."""

    async def __call__(
        self,
        url: str,
        method: str = "POST",
        path: str = "/x",
        body: bytes | Upload | None = b"{}",
        *,
        headers: list[tuple[bytes, bytes]] | None = None,
        connect: float = 10,
        first_byte: float = 10,
        idle: float = 10,
    ) -> Answer: ...


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    def __init__(self) -> None:
        super().__init__()
        self._leapt = 0.0

    def time(self) -> float:
        """The time in seconds."""
        return super().time() + self._leapt

    def leap(self, seconds: float) -> None:
        """Let time have passed."""
        self._leapt += seconds


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Both loops: their transports differ in what they do when a connection ends."""
    return {"asyncio": LeapingLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Starts servers; the test's end stops them and tells what their scripts did not expect."""
    async with contextlib.AsyncExitStack() as stack:

        async def begin(*scripts: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Server:
            running: set[asyncio.Task[None]] = set()

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                running.add(asyncio.create_task(server.serve(reader, writer)))

            listener = await asyncio.start_server(connected, host, 0, ssl=tls)
            port = listener.sockets[0].getsockname()[1]
            name = "localhost" if tls else f"[{host}]" if ":" in host else host
            server = Server(f"{'https' if tls else 'http'}://{name}:{port}")
            server.scripts += scripts

            async def stop() -> None:
                listener.close()
                for task in running:
                    task.cancel()
                results = await asyncio.gather(*running, return_exceptions=True)
                assert not [result for result in results if isinstance(result, Exception)]

            stack.push_async_callback(stop)
            return server

        yield begin


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client; the test's end closes it."""
    one = Client()
    try:
        yield one
    finally:
        await one.aclose()


@pytest.fixture
def ask(client: Client) -> Ask:
    """Opens answers with the client."""

    async def open_answer(
        url: str,
        method: str = "POST",
        path: str = "/x",
        body: bytes | Upload | None = b"{}",
        *,
        headers: list[tuple[bytes, bytes]] | None = None,
        connect: float = 10,
        first_byte: float = 10,
        idle: float = 10,
    ) -> Answer:
        return await client.open(
            url, method, path, headers or [], body, connect=connect, first_byte=first_byte, idle=idle
        )

    return open_answer


async def rest_of(answer: Answer) -> bytes:
    """The body to its end; the answer is closed then."""
    try:
        parts = []
        while part := await answer.chunk():
            parts.append(part)
        return b"".join(parts)
    finally:
        answer.close()


def ok(body: bytes = b"fine", *headers: bytes) -> bytes:
    """A plain good answer."""
    return b"\r\n".join([b"HTTP/1.1 200 OK", *headers, b"content-length: %d" % len(body), b"", body])


def chunked(*chunks: bytes) -> bytes:
    """The beginning of an answer in chunks, without its end."""
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"".join(map(chunk, chunks))


def chunk(data: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def answering(*answers: bytes) -> Script:
    """Answers one request after the other, then waits for the client to close."""

    async def script(peer: Peer) -> None:
        for answer in answers:
            await peer.request()
            await peer.say(answer)
        await peer.until_gone()

    return script
