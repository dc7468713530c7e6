"""Sends requests to servers over connections that are kept and used again."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from proxy.headers import RawHeaders
from proxy.upload import Upload
from proxy.wire.connection import Connection
from proxy.wire.errors import BadAddress, Broken, ConnectTimeout, Unreachable, Unsendable

KEPT = 4.0
"""Seconds for which an idle connection is used again: engines close theirs after five."""


class Server:
    """One server: its address, and the connections to it that wait for a request."""

    def __init__(self, url: str) -> None:
        """``url`` is the base address, without a trailing slash; raises :class:`BadAddress`."""
        try:
            parts = urlsplit(url)
            port = parts.port
            self.authority = parts.netloc.rpartition("@")[2].encode("ascii")
            self.prefix = parts.path.encode("ascii")
        except ValueError as exc:
            raise BadAddress(url) from exc
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadAddress(url)
        self.host = parts.hostname
        self.tls = parts.scheme == "https"
        self.port = (443 if self.tls else 80) if port is None else port
        self._kept: deque[Connection] = deque()

    def take(self, now: float) -> Connection | None:
        """The connection that was used last, so that in calm times the others can expire."""
        while self._kept:
            connection = self._kept.pop()
            if connection.usable and now - connection.idle_since < KEPT:
                return connection
            connection.abort()
        return None

    def keep(self, connection: Connection) -> None:
        """Keep a connection whose exchange has ended; those that have waited too long are closed."""
        self._kept.append(connection)
        while self._kept and connection.idle_since - self._kept[0].idle_since >= KEPT:
            self._kept.popleft().abort()


class Answer:
    """An answer whose status and headers have come and whose body has not. The caller closes it."""

    def __init__(self, server: Server, connection: Connection) -> None:
        self.status = connection.status
        self.headers = connection.headers
        self._server = server
        self._connection: Connection | None = connection

    async def chunk(self) -> bytes:
        """The next bytes of the body, not decoded; empty at its end. Raises :class:`WireError`."""
        assert self._connection is not None, "the answer was closed"
        return await self._connection.chunk()

    def close(self) -> None:
        """Keep the connection, or close it at once when the answer was not read to its end."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.finish():
            self._server.keep(connection)


class Pending:
    """An answer whose caller was cancelled before its head came. Whoever has it closes it, or what comes of it."""

    def __init__(self, server: Server, connection: Connection, first_byte_by: float) -> None:
        self._server = server
        self._connection = connection
        self._first_byte_by = first_byte_by

    async def answer(self) -> Answer:
        """Wait on; raises :class:`WireError`."""
        with _aborted_by_errors(self._connection):
            await self._connection.head(self._first_byte_by)
        return Answer(self._server, self._connection)

    def close(self) -> None:
        """Close the connection."""
        self._connection.abort()


class Client:
    """Connections to any number of servers."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self._open: set[Connection] = set()
        self._all_lost = asyncio.Event()
        self._tls: ssl.SSLContext | None = None

    async def open(
        self,
        url: str,
        method: str,
        path: str,
        headers: RawHeaders,
        body: bytes | Upload | None,
        *,
        connect: float,
        first_byte: float,
        idle: float,
        sent: Callable[[], None] | None = None,
        left: Callable[[Pending], None] | None = None,
    ) -> Answer:
        """Send a request to the server at a base address and wait for status and headers; raises :class:`WireError`.

        Limits in seconds: ``connect`` until the connection stands, ``first_byte`` from here to the first byte of the
        body, ``idle`` from each piece of the body to the next. An upload travels over a new connection, since it could
        not be sent again if a kept one turned out to be closed; its parts' errors are raised as they are.

        ``sent`` is called when the request is about to be sent, ``left`` takes the answer of one that was sent when the
        caller is cancelled; else its connection is closed. Neither is for uploads.
        """
        server = self._servers.get(url)
        if server is None:
            server = self._servers[url] = Server(url)
        head = _head(server, method, path, headers, body)
        loop = asyncio.get_running_loop()
        first_byte_by = loop.time() + first_byte
        if isinstance(body, Upload):
            fresh = await self._connect(server, min(loop.time() + connect, first_byte_by))
            with _aborted_by_errors(fresh):
                await fresh.upload(head, body, first_byte=first_byte, idle=idle)
            return Answer(server, fresh)
        kept = server.take(loop.time())
        if kept is not None:
            try:
                return await _exchange(server, kept, head, body or b"", first_byte_by, idle, sent, left)
            except Broken:
                # Engines may close an idle connection in the moment in which it is used again. Nothing was answered,
                # so the request is sent once more, over a connection that cannot be stale.
                if kept.answered:
                    raise
        fresh = await self._connect(server, min(loop.time() + connect, first_byte_by))
        return await _exchange(server, fresh, head, body or b"", first_byte_by, idle, sent, left)

    async def aclose(self) -> None:
        """Closes all connections, also those in use; returns when they are closed."""
        for connection in tuple(self._open):
            connection.abort()
        if self._open:
            self._all_lost.clear()
            await self._all_lost.wait()

    async def _connect(self, server: Server, deadline: float) -> Connection:
        if server.tls and self._tls is None:
            self._tls = ssl.create_default_context()
        tls = self._tls if server.tls else None
        try:
            async with asyncio.timeout_at(deadline):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(self._lost), server.host, server.port, ssl=tls
                )
        except TimeoutError as exc:
            raise ConnectTimeout(str(exc)) from exc
        except OSError as exc:
            raise Unreachable(str(exc)) from exc
        except ValueError as exc:
            raise BadAddress(server.host) from exc
        if connection.usable:  # else it was lost already, before this task could go on
            self._open.add(connection)
        return connection

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open:
            self._all_lost.set()


async def _exchange(
    server: Server,
    connection: Connection,
    head: bytes,
    body: bytes,
    first_byte_by: float,
    idle: float,
    sent: Callable[[], None] | None,
    left: Callable[[Pending], None] | None,
) -> Answer:
    if sent is not None:
        sent()
    try:
        await connection.exchange(head, body, first_byte_by=first_byte_by, idle=idle)
    except asyncio.CancelledError:
        if left is not None and connection.is_asked:
            left(Pending(server, connection, first_byte_by))
        else:
            connection.abort()
        raise
    except BaseException:
        connection.abort()
        raise
    return Answer(server, connection)


@contextmanager
def _aborted_by_errors(connection: Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:  # also when cancelled: an engine shall not compute what nobody reads
        connection.abort()
        raise


def _head(server: Server, method: str, path: str, headers: RawHeaders, body: bytes | Upload | None) -> bytes:
    try:
        target = server.prefix + path.encode("ascii")
    except UnicodeError as exc:
        raise Unsendable("the path is not ASCII") from exc
    lines = [b"%b %b HTTP/1.1" % (method.encode(), target), b"host: " + server.authority]
    lines += [b"%b: %b" % header for header in headers]
    length = body.length if isinstance(body, Upload) else body if body is None else len(body)
    if length is not None:
        lines.append(b"content-length: %d" % length)
    elif body is not None:
        lines.append(b"transfer-encoding: chunked")
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1 or target.count(b" "):
        raise Unsendable("a line break in a header or a blank in the path")
    return head + b"\r\n\r\n"
