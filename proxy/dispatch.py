"""The story of a request: choose, prefill, hand over, open decode; and what happens when one of these fails.

Whose fault is a failure? An engine's 4xx is the client's and goes to it unchanged, with no other engine asked. A client
that leaves is nobody's. Everything else is the instance's. After the first byte of the answer nothing is tried again.
"""

import logging
import time
from collections.abc import AsyncIterator, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from proxy.answer import Verdict, first_statement, judge
from proxy.completion import Bypass, Completion, bypass
from proxy.config import ProxyConfig
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
from proxy.hint import NO_HINT, Hint
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.record import Record, ServedBy
from proxy.settings import FailurePolicy
from proxy.steering import Steering
from proxy.topology import Role

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to the engines."""

    path: str
    """Of the URL, the same at the engines."""
    headers: RawHeaders
    completion: Completion
    record: Record
    hint: Hint = NO_HINT


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

    def __init__(
        self, config: ProxyConfig, pool: Pool, steering: Steering, client: EngineClient, metrics: Metrics
    ) -> None:
        connector = config.topology.connector
        self._handoff = None if connector is None else HANDOFFS[connector]
        self._policy = config.settings.failure_policy
        self._retry = config.settings.retry
        self._attempts = self._retry.attempts if self._policy is FailurePolicy.RETRY else 1
        self._timeouts = config.settings.timeouts
        self._pool = pool
        self._steering = steering
        self._client = client
        self._metrics = metrics

    async def answer(self, call: Call) -> Answer:
        """The answer, at the latest when its first event has come; raises :class:`proxy.errors.ProxyError`."""
        hint = self._steering.hint(call.completion, call.headers)
        call = call if hint is NO_HINT else replace(call, hint=hint)
        if self._handoff is None:
            return await self._aggregated(call, None)
        reason = bypass(call.completion)
        if reason is not None:
            return await self._aggregated(call, reason)
        if self._steering.conditional and (decode := self._choose(call, set(), Role.DECODE)) is not None:
            reason = self._steering.instead_of_pd(call.hint, decode)
            if reason is not None:
                return await self._aggregated(call, reason, on=decode)
        return await self._disaggregated(call, self._handoff)

    async def _disaggregated(self, call: Call, handoff: Handoff) -> Answer:
        """Through one pair, or by policy through others after it; failing that, what the policy wants instead."""
        tried: set[str] = set()
        failed: HandOverFailed | None = None
        for _ in range(self._attempts):
            if failed is not None and time.monotonic() > call.record.started + self._retry.within:
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
        if self._choose(call, tried, Role.DECODE) is None:
            raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No healthy decode instance."))
        prefill = self._choose(call, tried, Role.PREFILL)
        if prefill is None:
            raise HandOverFailed(Bypass.NO_PREFILL, NoInstance("No healthy prefill instance."))
        record.prefill, record.decode = prefill.instance.name, None
        try:
            body = await self._prefill(call, handoff, prefill)
        except PrefillWithoutKV as exc:
            raise HandOverFailed(Bypass.PREFILL_WITHOUT_KV, exc) from exc
        except EngineFailure as exc:
            raise HandOverFailed(Bypass.PREFILL_FAILED, exc) from exc
        decode = self._choose(call, tried, Role.DECODE)  # now, since others were chosen while prefill ran
        if decode is None:
            raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No healthy decode instance."))
        record.decode = decode.instance.name
        try:
            answer = await self._serve(call, decode, body)
        except (EngineError, EngineAborted, EngineUnreachable) as exc:
            raise HandOverFailed(Bypass.DECODE_FAILED, exc) from exc
        record.path = ServedBy.PD
        return answer

    def _choose(self, call: Call, tried: Set[str], *roles: Role) -> Member | None:
        candidates = [member for member in self._pool.healthy(*roles) if member.instance.name not in tried]
        return self._steering.choose(candidates, call.hint)

    async def _prefill(self, call: Call, handoff: Handoff, prefill: Member) -> bytes:
        """Run the prefill leg; returns the body for decode."""
        started = time.monotonic()
        try:
            with self._pool.using(prefill), self._steering.prefilling(prefill, call.hint):
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
        limits = self._timeouts.prefill
        upstream = await self._client.open(member.instance, "POST", call.path, call.headers, body, limits)
        try:
            return await _whole(upstream)
        finally:
            await upstream.aclose()

    async def _instead(self, call: Call, failed: "HandOverFailed", tried: set[str]) -> Answer:
        """When KV cannot be handed over: by policy the failure, or one instance serves the request alone."""
        logger.warning("%s: %s (%s)", call.record.id.internal, failed.reason, failed.failure)
        if self._policy is not FailurePolicy.AGGREGATE:
            raise failed.failure
        avoided = tried if isinstance(failed.failure, EngineUnreachable) else set()
        if avoided and self._choose(call, avoided, Role.AGGREGATED, Role.DECODE) is None:
            raise failed.failure
        return await self._aggregated(call, failed.reason, avoided)

    async def _aggregated(
        self, call: Call, reason: Bypass | None, avoided: Set[str] = frozenset(), on: Member | None = None
    ) -> Answer:
        member = on or self._choose(call, avoided, Role.AGGREGATED) or self._choose(call, avoided, Role.DECODE)
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
                self._steering.serving(member, call.hint)
                limits = self._timeouts.decode
                if call.completion.document.get("stream") is not True:
                    limits = replace(limits, first_byte=self._timeouts.whole_answer)
                upstream = await self._client.open(member.instance, "POST", call.path, call.headers, body, limits)
                resources.push_async_callback(upstream.aclose)
                if upstream.status != 200 or not upstream.is_event_stream:
                    return await _whole(upstream)
                rest = upstream.chunks()
                head = await _first_events(upstream, rest)
                call.record.first_byte = time.monotonic()
                name, headers = member.instance.name, from_engine(upstream.headers)
                return Stream(name, headers, head, rest, resources.pop_all())
        except EngineFailure as failure:
            self._metrics.failed(failure)
            raise


async def _whole(upstream: Upstream) -> Whole:
    """Read an answer that is not streamed; raises what it says when that is no success."""
    body = await upstream.read()
    headers = from_engine(upstream.headers)
    if upstream.status >= 400:
        raise _refusal(upstream, upstream.status, headers, body)
    _check(upstream, body)
    return Whole(upstream.status, headers, body)


async def _first_events(upstream: Upstream, chunks: AsyncIterator[bytes]) -> bytes:
    """Read a stream until an event is complete that says something; raises what it says when that is no success."""
    head = b""
    async for chunk in chunks:
        head += chunk
        data = first_statement(head)
        if data is not None:
            _check(upstream, data)
            return head
    raise EngineCut(upstream.instance.name, "ended the stream before it said anything")


def _check(upstream: Upstream, body: bytes) -> None:
    judgement = judge(body)
    if judgement.verdict is Verdict.ABORTED:
        raise EngineAborted(upstream.instance.name)
    if judgement.verdict is Verdict.ERROR:
        headers = [(b"content-type", b"application/json")]
        raise _refusal(upstream, judgement.status, headers, judgement.body)


def _refusal(upstream: Upstream, status: int, headers: RawHeaders, body: bytes) -> EngineRejection | EngineError:
    if status < 500:
        return EngineRejection(status, headers, body)
    return EngineError(upstream.instance.name, status, headers, body)
