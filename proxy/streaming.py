"""Relays an open answer, byte by byte as it comes, until it ends or the client leaves."""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AsyncExitStack

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from proxy.answer import DONE, at_event_end
from proxy.disconnect import unless_gone
from proxy.dispatch import Stream
from proxy.engine import Upstream
from proxy.errors import ClientGone, EngineCut, EngineFailure, ProxyError, ShuttingDown, error_body
from proxy.headers import RawHeaders

_TAIL = 16
"""Bytes of the stream's end that tell whether it was complete, and whether an event was."""


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
    """Relays events; where they break off, an event says so."""

    def __init__(self, stream: Stream, headers: RawHeaders, at_end: Callable[[int, ProxyError | None], None]) -> None:
        def end(status: int, error: ProxyError | None) -> None:
            stream.settle(error)
            at_end(status, error)

        super().__init__(200, [*stream.headers, *headers], stream.resources, end)
        self._stream = stream

    async def relay(self, send: Send) -> EngineFailure | None:
        chunk = tail = self._stream.head
        failure: EngineFailure | None = None
        try:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            async for chunk in self._stream.rest:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                tail = chunk if len(chunk) >= _TAIL else tail[-_TAIL:] + chunk
            if DONE not in tail[-_TAIL:]:
                raise EngineCut(self._stream.instance, "ended the stream before the answer was complete")
        except EngineFailure as cut:
            failure = cut
            await send({"type": "http.response.body", "body": _error_event(cut, tail), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return failure

    async def break_off(self, send: Send, reason: ShuttingDown) -> None:
        event = b"\n\n" + _error_event(reason, b"")  # wherever the last event stood: empty ones are nothing
        await send({"type": "http.response.body", "body": event})


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


def _error_event(failure: ProxyError, tail: bytes) -> bytes:
    """An event on which OpenAI clients raise. No ``[DONE]`` follows: the answer is not complete."""
    gap = b"" if at_event_end(tail) else b"\n\n"
    return gap + b"data: " + error_body(str(failure), failure.type, failure.status) + b"\n\n"
