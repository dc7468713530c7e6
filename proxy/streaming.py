"""Relays an open answer as it comes, until it ends or the client leaves."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from proxy.answer import Judgement, Verdict, good_part
from proxy.disconnect import unless_gone
from proxy.engine import Upstream
from proxy.errors import ClientGone, EngineAborted, EngineCut, EngineError, EngineFailure, ProxyError, ShuttingDown
from proxy.events import ENDS, last_event, whole_events
from proxy.exchange import Stream
from proxy.headers import RawHeaders
from proxy.record import Phase, Record
from proxy.usage import drafted_of, usage_of

_END = ENDS[0]
"""By which engines end events: counted where it is only a matter of the pace."""


class Relay(Response):
    """A response that owns an open answer: whatever happens, that is closed and ``at_end`` called, once."""

    def __init__(
        self,
        status: int,
        headers: RawHeaders,
        resources: AsyncExitStack,
        at_end: Callable[[int, ProxyError | None], None],
    ) -> None:
        super().__init__()
        self.status_code = status
        self.raw_headers = headers
        self._resources = resources
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ended: ProxyError | None = ClientGone("The client closed the connection.")
        try:
            async with self._resources:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                ended = await unless_gone(self.relay(send), receive)
        except ShuttingDown as stopped:
            ended = stopped
            with suppress(asyncio.CancelledError):  # the server waits no longer for a client that does not read
                await self.break_off(send, stopped)
        except (ClientGone, OSError):  # OSError: how some servers tell a writer that the client is gone
            pass
        finally:
            self._at_end(self.status_code, ended)

    async def break_off(self, send: Send, reason: ShuttingDown) -> None:
        """Say that the rest will not come. Without it, the server closes the connection before the body's end."""

    @abstractmethod
    async def relay(self, send: Send) -> EngineFailure | None:
        """Send the body; what broke the answer off, if anything did."""


class EventRelay(Relay):
    """Relays whole events; where they break off or the engine gives up, an event says so."""

    def __init__(self, stream: Stream, record: Record, at_end: Callable[[int, ProxyError | None], None]) -> None:
        """``record`` is told of the answer's pace and its tokens."""

        def ended(status: int, error: ProxyError | None) -> None:
            stream.settle(error)
            end = self._before + self._last + self._begun
            record.usage, record.drafted = usage_of(end), drafted_of(end)
            at_end(status, error)

        super().__init__(200, [*stream.headers, *record.headers()], stream.resources, ended)
        record.phase = Phase.ANSWER
        self._record = record
        self._stream = stream
        self._dialect = stream.dialect
        self._before = self._last = b""
        """The events that were sent last, and those before them: the last but one has the tokens."""
        self._events = 0
        self._begun = b""
        """What has come of an event that is not complete."""

    async def relay(self, send: Send) -> EngineFailure | None:
        failure: EngineFailure | None = None
        try:
            await self._pass_on(self._stream.head, send)
            await self._pass_on_rest(send)
            await self._check_end(send)
        except EngineError as told:
            failure = told
        except EngineFailure as cut:
            failure = cut
            await self._tell(cut, send)
        await send({"type": "http.response.body", "body": b""})
        return failure

    async def _pass_on_rest(self, send: Send) -> None:
        """Of each arrival only the time is looked at."""
        self._events, pause, before = 0, 0.0, time.monotonic()
        try:
            async for chunk in self._stream.rest:
                now = time.monotonic()
                if now - before > pause:
                    pause = now - before
                before = now
                await self._pass_on(chunk, send)
        finally:
            self._record.events = self._events - 1
            self._record.longest_pause = pause or None

    async def break_off(self, send: Send, reason: ShuttingDown) -> None:
        await self._tell(reason, send)
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, error: ProxyError, send: Send) -> None:
        event = self._dialect.error_event(str(error), error.type, error.status, self._last)
        await send({"type": "http.response.body", "body": event, "more_body": True})

    async def _pass_on(self, chunk: bytes, send: Send) -> None:
        """Send the whole events; raises :class:`EngineAborted`, or :class:`EngineError` when the client was told."""
        if self._begun or not chunk.endswith(ENDS):
            chunk, self._begun = whole_events(self._begun + chunk)
        failure: EngineFailure | None = None
        if self._dialect.suspects(chunk):
            chunk, judgement = good_part(chunk, self._dialect)
            failure = _failure(self._stream.instance, judgement)
        if chunk:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._before, self._last = self._last, chunk
            self._events += chunk.count(_END) or 1
        if failure is not None:
            raise failure

    async def _check_end(self, send: Send) -> None:
        event = last_event(self._last + self._begun)
        if event is None or not self._dialect.completes(event):
            raise EngineCut(self._stream.instance, "ended the stream before the answer was complete")
        if self._begun:
            await send({"type": "http.response.body", "body": self._begun, "more_body": True})


class Passage(Relay):
    """Relays an engine's answer as it is, breaking off where that broke off."""

    def __init__(
        self,
        upstream: Upstream,
        headers: RawHeaders,
        resources: AsyncExitStack,
        at_end: Callable[[int, ProxyError | None], None],
    ) -> None:
        super().__init__(upstream.status, headers, resources, at_end)
        self._upstream = upstream

    async def relay(self, send: Send) -> EngineFailure | None:
        try:
            async for chunk in self._upstream.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except EngineFailure as cut:
            return cut  # without the end of its body, the server closes the connection: it cannot look complete
        await send({"type": "http.response.body", "body": b""})
        return None


def _failure(instance: str, judgement: Judgement) -> EngineFailure | None:
    match judgement.verdict:
        case Verdict.GOOD:
            return None
        case Verdict.ABORTED:
            return EngineAborted(instance)
        case Verdict.ERROR:
            return EngineError(instance, judgement.status, [], judgement.body)
