"""One connection to a server: one exchange of a request and its answer at a time."""

import asyncio
import math
from collections.abc import Callable
from contextlib import aclosing
from typing import cast

from proxy.headers import RawHeaders
from proxy.upload import Upload
from proxy.wire.errors import AnswerTimeout, Broken, Malformed, SendTimeout, WireError
from proxy.wire.response import ResponseReader

BUFFER_LIMIT = 256 * 1024
"""Bytes of a body that wait for their reader before the connection stops receiving."""
_PIECE = 256 * 1024
"""Bytes of a request's body that are handed over to the socket at once."""


class Connection(asyncio.Protocol):
    """Used by one task at a time. Deadlines are times of the event loop's clock, in seconds."""

    def __init__(self, at_loss: Callable[["Connection"], None]) -> None:
        self._at_loss = at_loss
        self._loop = asyncio.get_running_loop()
        self._reader = ResponseReader()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._failure: WireError | None = None
        # One timer serves many waits: it is moved when it would come too late, and looks again when it came too early.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._deadline = math.inf
        self._late: type[WireError] = AnswerTimeout
        self._exchanging = False
        self._sent = True
        self._writable = True
        self._drained = asyncio.Event()
        self._paused = False
        self._first_byte_by: float | None = None
        self._idle = 0.0
        self.answered = False
        """Whether any byte has come since the request was sent."""
        self.usable = False
        """Whether the connection stands and nothing has come that was not asked for."""
        self.idle_since = 0.0
        """When the last exchange ended."""

    @property
    def status(self) -> int:
        """Of the answer."""
        return self._reader.status

    @property
    def is_asked(self) -> bool:
        """Whether it stands and the whole of a request was sent over it."""
        return self.usable and self._sent

    @property
    def headers(self) -> RawHeaders:
        """Of the answer."""
        return self._reader.headers

    async def exchange(self, head: bytes, body: bytes, *, first_byte_by: float, idle: float) -> None:
        """Send a request and wait for status and headers; raises :class:`WireError`.

        ``first_byte_by`` is the deadline of the first byte of the answer's body, ``idle`` the seconds that may pass
        before each further one.
        """
        self._begin(head, idle)
        self._first_byte_by = first_byte_by
        await self._send(head, body, first_byte_by)
        await self.head(first_byte_by)

    async def head(self, by: float) -> None:
        """Wait for status and headers; raises :class:`WireError`. Also after an :meth:`exchange` was cancelled."""
        while not self._reader.head_complete:
            await self._wait(by, AnswerTimeout)

    async def upload(self, head: bytes, body: Upload, *, first_byte: float, idle: float) -> None:
        """As :meth:`exchange`, with a body that still comes: ``first_byte`` seconds count from its end.

        Until then only the server can be late, when it takes nothing for ``idle`` seconds. Also raises what the body's
        parts do.
        """
        self._begin(head, idle)
        self._sent = False
        self._transport.write(head)
        sending = asyncio.create_task(self._send_parts(body, idle), name="upload")
        sending.add_done_callback(lambda _: self._wake())
        deadline = math.inf
        try:
            while not self._reader.head_complete:
                if sending.done() and deadline == math.inf:
                    sending.result()
                    deadline = self._loop.time() + first_byte
                await self._wait(deadline, AnswerTimeout)
        finally:
            sending.cancel()  # an early answer is a refusal of the rest
            await asyncio.gather(sending, return_exceptions=True)
        self._first_byte_by = self._loop.time() + first_byte if deadline == math.inf else deadline

    async def chunk(self) -> bytes:
        """What has come of the body, at least one byte; empty at its end. Raises :class:`WireError`."""
        reader = self._reader
        if not reader.size:
            deadline = self._first_byte_by
            if deadline is None:
                deadline = self._loop.time() + self._idle
            while not reader.size:
                if reader.complete:
                    return b""
                await self._wait(deadline, AnswerTimeout)
        self._first_byte_by = None
        return self._take()

    def finish(self) -> bool:
        """End the exchange; returns whether the connection can take another. If not, it is closed at once."""
        reader, self._exchanging = self._reader, False
        if not (
            reader.complete
            and reader.keep_alive
            and self.usable
            and self._sent
            and not self._transport.get_write_buffer_size()
        ):
            self.abort()
            return False
        self._take()
        self.idle_since = self._loop.time()
        return True

    def abort(self) -> None:
        """Close the socket without waiting for anything."""
        self.usable = False
        self._transport.abort()

    def _take(self) -> bytes:
        if self._paused and self.usable:
            self._paused = False
            self._transport.resume_reading()
        return self._reader.take()

    def _begin(self, head: bytes, idle: float) -> None:
        if self._failure is not None:
            raise self._failure
        self._reader.begin(to_head=head.startswith(b"HEAD "))
        self._exchanging = True
        self.answered = False
        self._idle = idle

    async def _send_parts(self, body: Upload, idle: float) -> None:
        async with aclosing(body.parts) as parts:
            async for part in parts:
                if self._transport.is_closing():
                    return
                self._transport.write(part if body.length is not None else b"%x\r\n%b\r\n" % (len(part), part))
                if not self._writable:
                    self._drained.clear()
                    try:
                        async with asyncio.timeout(idle):
                            await self._drained.wait()
                    except TimeoutError as exc:
                        raise SendTimeout from exc
        if body.length is None:
            self._transport.write(b"0\r\n\r\n")
        self._sent = True

    async def _send(self, head: bytes, body: bytes, deadline: float) -> None:
        if len(body) <= _PIECE:
            self._transport.write(head + body)
            return
        self._sent = False
        self._transport.write(head)
        rest = memoryview(body)
        while rest and not self._reader.head_complete:  # an early answer is a refusal of the rest
            if not self._writable or self._transport.is_closing():
                await self._wait(deadline, SendTimeout)
                continue
            self._transport.write(rest[:_PIECE])
            rest = rest[_PIECE:]
        self._sent = not rest

    async def _wait(self, deadline: float, late: type[WireError]) -> None:
        """Until something has happened; raises what has gone wrong."""
        self._deadline, self._late = deadline, late
        if deadline < self._timer_at and self._failure is None:
            self._set_timer(deadline)
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_at = None, math.inf
        if at <= self._loop.time():  # not left to the timer, which what comes in the meantime could outrun for ever
            self._fail(self._late())
            return
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_at = None, math.inf
        if self._waiter is None or self._waiter.done():
            return
        self._set_timer(self._deadline)

    def _fail(self, failure: WireError) -> None:
        if self._failure is None:
            self._failure = failure
        self.abort()
        self._wake()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer have come."""
        if not self._exchanging:
            self.abort()
            return
        self.answered = True
        reader = self._reader
        try:
            reader.feed(data)
        except Malformed as exc:
            self._fail(exc)
            return
        if reader.size > BUFFER_LIMIT and not self._paused and self.usable:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The server sends no more; the transport closes itself."""
        self._reader.feed_eof()
        self.usable = False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self.usable = False
        if self._timer is not None:
            self._timer.cancel()
        if self._failure is None:
            self._failure = Broken(str(exc or "closed by the server"))
        self._wake()
        self._at_loss(self)

    def pause_writing(self) -> None:
        """The server reads more slowly than the request is sent."""
        self._writable = False

    def resume_writing(self) -> None:
        """The server has caught up."""
        self._writable = True
        self._drained.set()
        self._wake()
