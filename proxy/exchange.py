"""One request to one instance, up to the whole answer, or to the first event of a stream that says something."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType

from proxy.answer import Dialect, Judgement, Verdict, first_statement
from proxy.completion import Completion
from proxy.dialects import DIALECTS
from proxy.engine import EngineClient, Upstream
from proxy.errors import EngineAborted, EngineCut, EngineError, EngineFailure, EngineRejection, ProxyError
from proxy.evidence import Evidence
from proxy.headers import RawHeaders, from_engine
from proxy.hint import NO_HINT, Hint
from proxy.pool import Member, Pool
from proxy.record import Phase, Record
from proxy.release import Kept
from proxy.routing import TO_MAIN, Route
from proxy.settings import FailurePolicy, Timeouts
from proxy.steering import Steering
from proxy.tracing import LegKind, Trace


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to the engines."""

    path: str
    """Of the URL, with the query; the same at the engines."""
    headers: RawHeaders
    completion: Completion
    record: Record
    policy: FailurePolicy
    route: Route = TO_MAIN
    hint: Hint = NO_HINT
    trace: Trace | None = None
    waits_for_prefill: bool = False
    """Whether the answering leg has to wait for the other one: its time begins after that one's."""

    @property
    def dialect(self) -> Dialect:
        """Of the engines' answers."""
        return DIALECTS[self.completion.endpoint]


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that has come completely."""

    status: int
    headers: RawHeaders
    body: bytes


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer of status 200 in server-sent events, of which the first has come. Whoever has it closes it."""

    instance: str
    dialect: Dialect
    headers: RawHeaders
    head: bytes
    """What has come so far."""
    rest: AsyncIterator[bytes]
    """Raises :class:`EngineFailure`."""
    resources: AsyncExitStack
    """Closes the connection and counts the request out."""
    settle: Callable[[ProxyError | None], None]
    """To be called with what ended it, once."""


Answer = Whole | Stream


class Exchange:
    """Sends the legs of requests, and settles what each shows about its instance."""

    def __init__(self, timeouts: Timeouts, pool: Pool, steering: Steering, client: EngineClient) -> None:
        self._timeouts = timeouts
        self._whole = replace(timeouts.decode, first_byte=timeouts.whole_answer)
        self._prefill_time = timeouts.prefill.first_byte
        self._pool = pool
        self._steering = steering
        self._client = client

    async def prefill(self, call: Call, member: Member, body: bytes, kept: Kept | None = None) -> Whole:
        """The prefill leg; raises :class:`ProxyError`, which the caller settles with what it makes of the answer."""
        if call.trace is None:
            return await self._prefill(call, call.headers, member, body, kept)
        leg = call.trace.leg(LegKind.PREFILL, member.instance.name)
        try:
            answer = await self._prefill(call, leg.onto(call.headers), member, body, kept)
        except BaseException as error:
            leg.end(error)
            raise
        leg.end(None)
        return answer

    async def _prefill(self, call: Call, headers: RawHeaders, member: Member, body: bytes, kept: Kept | None) -> Whole:
        limits, left = self._timeouts.prefill, None if kept is None else kept.left_at_prefill
        upstream = await self._client.open(member.instance, "POST", call.path, headers, body, limits, left=left)
        try:
            answer = await _whole(upstream, call.dialect)
        except asyncio.CancelledError:
            if left is None:
                await upstream.aclose()
            else:
                left(upstream)
            raise
        except BaseException:
            await upstream.aclose()
            raise
        await upstream.aclose()
        return answer

    async def serve(
        self, call: Call, member: Member, body: bytes, evidence: Evidence, kept: Kept | None = None
    ) -> Answer:
        """The leg that answers the client; raises :class:`ProxyError`."""
        if call.trace is None:
            return await self._serve(call, call.headers, member, body, evidence, kept)
        kind = LegKind.AGGREGATED if call.record.prefill is None else LegKind.DECODE
        leg = call.trace.leg(kind, member.instance.name)
        try:
            answer = await self._serve(call, leg.onto(call.headers), member, body, evidence, kept)
        except BaseException as error:
            leg.end(error)
            raise
        leg.first_byte()
        if isinstance(answer, Whole):
            leg.end(None)
            return answer
        settle = answer.settle

        def at_end(error: ProxyError | None) -> None:
            leg.end(error)
            settle(error)

        return replace(answer, settle=at_end)

    async def _serve(
        self, call: Call, headers: RawHeaders, member: Member, body: bytes, evidence: Evidence, kept: Kept | None
    ) -> Answer:
        call.record.phase = Phase.FIRST_EVENT
        sent, left = (None, None) if kept is None else (kept.sent, kept.left_at_decode)
        limits = self._timeouts.decode if call.completion.document.get("stream") is True else self._whole
        if call.waits_for_prefill:
            limits = replace(limits, first_byte=limits.first_byte + self._prefill_time)
        try:
            async with AsyncExitStack() as resources:
                resources.enter_context(self._pool.using(member))
                self._steering.serving(member, call.hint)
                upstream = await self._client.open(
                    member.instance, "POST", call.path, headers, body, limits, sent=sent, left=left
                )
                resources.push_async_exit(partial(_end_of, upstream, left))
                if upstream.status != 200 or not upstream.is_event_stream:
                    answer = await _whole(upstream, call.dialect)
                    evidence.begun(streamed=False)
                    evidence.settle(None)
                    return answer
                rest = upstream.chunks()
                head = await _first_events(upstream, rest, call.dialect)
                evidence.begun(streamed=True)
                call.record.first_byte = time.monotonic()
                name, told = member.instance.name, from_engine(upstream.headers)
                return Stream(name, call.dialect, told, head, rest, resources.pop_all(), evidence.settle)
        except EngineFailure as failure:
            evidence.settle(failure)
            raise


async def _end_of(
    upstream: Upstream,
    left: Callable[[Upstream], None] | None,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Close an answer, or leave it to somebody when the client has left before it said anything."""
    if left is not None and isinstance(error, asyncio.CancelledError):
        left(upstream)
    else:
        await upstream.aclose()


async def _whole(upstream: Upstream, dialect: Dialect) -> Whole:
    """Read an answer that is not streamed; raises what it says when that is no success."""
    body = await upstream.read()
    headers = from_engine(upstream.headers)
    if upstream.status >= 400:
        raise _refusal(upstream, upstream.status, headers, body)
    if not (body.startswith(b"{") and body.endswith(b"}")):
        raise EngineCut(upstream.instance.name, "answered what is no JSON object")
    _check(upstream, dialect.judge(body))
    return Whole(upstream.status, headers, body)


async def _first_events(upstream: Upstream, chunks: AsyncIterator[bytes], dialect: Dialect) -> bytes:
    """Read a stream until an event is complete that says something; raises what it says when that is no success."""
    head = b""
    try:
        async for chunk in chunks:
            head += chunk
            judgement = first_statement(head, dialect)
            if judgement is not None:
                _check(upstream, judgement)
                return head
    except EngineCut as cut:
        if not (head and dialect.fails_by_breaking_off):
            raise
        headers = [(b"content-type", b"application/json")]
        body = dialect.error_body("Internal server error", "InternalServerError", 500)
        raise EngineError(upstream.instance.name, 500, headers, body) from cut
    raise EngineCut(upstream.instance.name, "ended the stream before it said anything")


def _check(upstream: Upstream, judgement: Judgement) -> None:
    if judgement.verdict is Verdict.ABORTED:
        raise EngineAborted(upstream.instance.name)
    if judgement.verdict is Verdict.ERROR:
        headers = [(b"content-type", b"application/json")]
        raise _refusal(upstream, judgement.status, headers, judgement.body)


def _refusal(upstream: Upstream, status: int, headers: RawHeaders, body: bytes) -> EngineRejection | EngineError:
    if status < 500:
        return EngineRejection(status, headers, body)
    return EngineError(upstream.instance.name, status, headers, body)
