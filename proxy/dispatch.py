"""The story of a request: choose, prefill, hand over, open decode; and what happens when one of these fails.

Whose fault is a failure? An engine's 4xx is the client's and goes to it unchanged, with no other engine asked. A client
that leaves is nobody's. Everything else is the instance's. After the first byte of the answer nothing is tried again.
"""

import logging
import time
from collections.abc import AsyncIterator, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass

from proxy.answer import Dialect, Judgement, Verdict, first_statement
from proxy.completion import Bypass, Completion, bypass
from proxy.config import FailurePolicy, ProxyConfig
from proxy.dialects import DIALECTS
from proxy.engine import EngineClient, Upstream
from proxy.errors import (
    EngineAborted,
    EngineCut,
    EngineError,
    EngineFailure,
    EngineRejection,
    EngineUnreachable,
    NoInstance,
    PrefillWithoutKV,
    ProxyError,
)
from proxy.handoff import HANDOFFS, Handoff
from proxy.headers import RawHeaders, from_engine
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.record import Record, ServedBy
from proxy.selection import least_in_flight
from proxy.topology import Role

logger = logging.getLogger(__name__)

ATTEMPTS = 3
"""Pairs that the policy ``retry`` tries for one request."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to the engines."""

    path: str
    """Of the URL, with the query; the same at the engines."""
    headers: RawHeaders
    completion: Completion
    record: Record

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


Answer = Whole | Stream


class HandOverFailed(Exception):
    """One pair did not serve the request; its ``failure`` is the client's if nobody else does."""

    def __init__(self, reason: Bypass, failure: ProxyError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.failure = failure


class Dispatcher:
    """Answers requests with the instances of a pool."""

    def __init__(self, config: ProxyConfig, pool: Pool, client: EngineClient, metrics: Metrics) -> None:
        connector = config.topology.connector
        self._handoff = None if connector is None else HANDOFFS[connector]
        self._policy = config.failure_policy
        self._attempts = ATTEMPTS if self._policy is FailurePolicy.RETRY else 1
        self._try_again_within = config.timeouts.first_byte
        self._pool = pool
        self._client = client
        self._metrics = metrics

    async def answer(self, call: Call) -> Answer:
        """The answer, at the latest when its first event has come; raises :class:`proxy.errors.ProxyError`."""
        if self._handoff is None:
            return await self._aggregated(call, None)
        reason = bypass(call.completion)
        if reason is not None:
            return await self._aggregated(call, reason)
        return await self._disaggregated(call, self._handoff)

    async def _disaggregated(self, call: Call, handoff: Handoff) -> Answer:
        """Through one pair, or by policy through others after it; failing that, what the policy wants instead."""
        tried: set[str] = set()
        failed: HandOverFailed | None = None
        for _ in range(self._attempts):
            if failed is not None and time.monotonic() > call.record.started + self._try_again_within:
                break
            try:
                return await self._through_a_pair(call, handoff, tried)
            except HandOverFailed as exc:
                if failed is None or not isinstance(exc.failure, NoInstance):  # else there is nobody left to try
                    failed = exc
                if isinstance(exc.failure, EngineFailure):
                    tried.add(exc.failure.instance)
        assert failed is not None
        return await self._instead(call, failed, tried)

    async def _through_a_pair(self, call: Call, handoff: Handoff, tried: set[str]) -> Answer:
        """Prefill, hand over, decode, with instances that were not tried; raises :class:`HandOverFailed`."""
        record = call.record
        if self._choose(tried, Role.DECODE) is None:
            raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No healthy decode instance."))
        prefill = self._choose(tried, Role.PREFILL)
        if prefill is None:
            raise HandOverFailed(Bypass.NO_PREFILL, NoInstance("No healthy prefill instance."))
        record.prefill, record.decode = prefill.instance.name, None
        try:
            body = await self._prefill(call, handoff, prefill)
        except PrefillWithoutKV as exc:
            raise HandOverFailed(Bypass.PREFILL_WITHOUT_KV, exc) from exc
        except EngineFailure as exc:
            raise HandOverFailed(Bypass.PREFILL_FAILED, exc) from exc
        decode = self._choose(tried, Role.DECODE)  # now, since others were chosen while prefill ran
        if decode is None:
            raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No healthy decode instance."))
        record.decode = decode.instance.name
        try:
            answer = await self._serve(call, decode, body)
        except (EngineError, EngineAborted, EngineUnreachable) as exc:
            raise HandOverFailed(Bypass.DECODE_FAILED, exc) from exc
        record.path = ServedBy.PD
        return answer

    def _choose(self, tried: Set[str], *roles: Role) -> Member | None:
        return least_in_flight(member for member in self._pool.healthy(*roles) if member.instance.name not in tried)

    async def _prefill(self, call: Call, handoff: Handoff, prefill: Member) -> bytes:
        """Run the prefill leg; returns the body for decode."""
        started = time.monotonic()
        try:
            with self._pool.using(prefill):
                answer = await self._ask(call, prefill, handoff.prefill_body(call.completion))
            body = handoff.decode_body(call.completion, answer.body)
            if body is None:
                raise PrefillWithoutKV(prefill.instance.name)
        except EngineFailure as failure:
            self._metrics.failed(failure)
            raise
        self._metrics.handoff.observe(time.monotonic() - started)
        return body

    async def _ask(self, call: Call, member: Member, body: bytes) -> Whole:
        upstream = await self._client.open(member.instance, "POST", call.path, call.headers, body)
        try:
            return await _whole(upstream, call.dialect)
        finally:
            await upstream.aclose()

    async def _instead(self, call: Call, failed: "HandOverFailed", tried: set[str]) -> Answer:
        """When KV cannot be handed over: by policy the failure, or one instance serves the request alone."""
        logger.warning("%s: %s (%s)", call.record.id.internal, failed.reason, failed.failure)
        if self._policy is not FailurePolicy.AGGREGATE:
            raise failed.failure
        avoided = tried if isinstance(failed.failure, EngineUnreachable) else set()
        if avoided and self._choose(avoided, Role.AGGREGATED, Role.DECODE) is None:
            raise failed.failure
        return await self._aggregated(call, failed.reason, avoided)

    async def _aggregated(self, call: Call, reason: Bypass | None, avoided: Set[str] = frozenset()) -> Answer:
        member = self._choose(avoided, Role.AGGREGATED) or self._choose(avoided, Role.DECODE)
        if member is None:
            raise NoInstance("No healthy instance.")
        record = call.record
        record.prefill, record.decode, record.bypass = None, member.instance.name, reason
        answer = await self._serve(call, member, call.completion.body)
        record.path = ServedBy.AGGREGATED
        return answer

    async def _serve(self, call: Call, member: Member, body: bytes) -> Answer:
        """One try on one instance, up to the first event or the whole answer."""
        try:
            async with AsyncExitStack() as resources:
                resources.enter_context(self._pool.using(member))
                upstream = await self._client.open(member.instance, "POST", call.path, call.headers, body)
                resources.push_async_callback(upstream.aclose)
                if upstream.status != 200 or not upstream.is_event_stream:
                    return await _whole(upstream, call.dialect)
                rest = upstream.chunks()
                head = await _first_events(upstream, rest, call.dialect)
                call.record.first_byte = time.monotonic()
                name, headers = member.instance.name, from_engine(upstream.headers)
                return Stream(name, call.dialect, headers, head, rest, resources.pop_all())
        except EngineFailure as failure:
            self._metrics.failed(failure)
            raise


async def _whole(upstream: Upstream, dialect: Dialect) -> Whole:
    """Read an answer that is not streamed; raises what it says when that is no success."""
    body = await upstream.read()
    headers = from_engine(upstream.headers)
    if upstream.status >= 400:
        raise _refusal(upstream, upstream.status, headers, body)
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
