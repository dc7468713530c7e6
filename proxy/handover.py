"""A request's way through a prefill and a decode instance: the two legs, and the KV cache between them."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from proxy.bootstrap import Bootstrap
from proxy.completion import Bypass
from proxy.errors import (
    EngineAborted,
    EngineError,
    EngineFailure,
    EngineUnreachable,
    NoInstance,
    PrefillWithoutKV,
    ProxyError,
)
from proxy.evidence import Evidence
from proxy.exchange import Answer, Call, Exchange, Stream
from proxy.handoff import Handoff
from proxy.handoff.protocol import Concurrent, Order, Source
from proxy.headers import with_headers
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.record import Phase, Retry
from proxy.release import Kept, Releases
from proxy.side_by_side import ended, side_by_side
from proxy.steering import Steering

T = TypeVar("T")
NextDecode = Callable[[str | None], Member | None]


class HandOverFailed(Exception):
    """One pair did not serve the request; its ``failure`` is the client's if nobody else does."""

    def __init__(self, reason: Bypass, failure: ProxyError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.failure = failure


class HandOver:
    """Runs the legs as a connector wants them."""

    def __init__(
        self,
        exchange: Exchange,
        pool: Pool,
        steering: Steering,
        bootstrap: Bootstrap,
        metrics: Metrics,
        releases: Releases,
        evidence: type[Evidence] = Evidence,
    ) -> None:
        """``evidence``: what the legs' outcomes are held against."""
        self._exchange = exchange
        self._pool = pool
        self._steering = steering
        self._bootstrap = bootstrap
        self._evidence = evidence
        self._metrics = metrics
        self._releases = releases

    async def through(self, call: Call, handoff: Handoff, prefill: Member, next_decode: NextDecode) -> Answer:
        """Prefill, hand over, decode; raises :class:`HandOverFailed`.

        ``next_decode`` is asked for the decode instance when the KV is there, or at once if the legs run side by side;
        and again, with the name of the one that could not be reached, as long as the KV waits for somebody to take it.
        ``None`` ends it.
        """
        record = call.record
        record.attempts += 1
        record.phase = Phase.PREFILL
        record.prefill, record.decode = prefill.instance.name, None
        if handoff.order is Order.CONCURRENT:
            return await self._both(call, handoff, prefill, next_decode)
        kept = Kept(self._releases, handoff, prefill, call.headers)
        asked = handoff.prefill_body(call.completion)
        body = await self._prefill(call, prefill, asked, partial(handoff.decode_body, call.completion), kept)
        try:
            return await self._decode(call, prefill, body, next_decode, kept)
        except BaseException:  # also when the client has left
            kept.give_back(body)
            raise

    async def _both(self, call: Call, handoff: Concurrent, prefill: Member, next_decode: NextDecode) -> Answer:
        """Decode must not wait for a prefill that has failed, nor prefill compute for a decode that has."""
        if prefill.source is None and handoff.has_bootstrap:
            prefill.source = await self._ask(prefill)
        record, known = call.record, prefill.source
        # Engines tell tries of one request apart by their id: what is left of one must not meet the next.
        attempt = record.id.internal if record.attempts == 1 else f"{record.id.internal}.{record.attempts}"
        call = replace(call, headers=with_headers(call.headers, [(b"x-request-id", attempt.encode())]))
        try:
            if known is None:
                prefill.source = source = await self._prefill_for(call, handoff, prefill, None, attempt)
                body = handoff.decode_body(call.completion, attempt, source)
                return await self._decode(call, prefill, body, next_decode)
            body = handoff.decode_body(call.completion, attempt, known)
            answer, leg = await side_by_side(
                self._prefill_for(call, handoff, prefill, known, attempt),
                self._decode(replace(call, waits_for_prefill=True), prefill, body, next_decode),
                _discard,
            )
        except (HandOverFailed, EngineFailure):
            prefill.source = None  # it may be another process by now
            raise
        if isinstance(answer, Stream):
            answer.resources.push_async_callback(ended, leg)
        else:
            await ended(leg)
        return answer

    async def _prefill_for(
        self, call: Call, handoff: Concurrent, prefill: Member, known: Source | None, attempt: str
    ) -> Source:
        """The prefill leg; who decode gets KV from. If that is not who it was told, it waits in vain."""

        def read(answer: bytes) -> Source | None:
            source = handoff.source(answer, known)
            other = known is not None and source is not None and source.engine_id != known.engine_id
            return None if other else source

        if known is not None and known.rank is not None:
            rank = (b"x-data-parallel-rank", b"%d" % known.rank)
            call = replace(call, headers=with_headers(call.headers, [rank]))
        return await self._prefill(call, prefill, handoff.prefill_body(call.completion, attempt), read)

    async def _ask(self, prefill: Member) -> Source:
        try:
            return await self._bootstrap.source(prefill.instance)
        except EngineFailure as failure:
            self._evidence(prefill, self._metrics).settle(failure)
            raise HandOverFailed(Bypass.PREFILL_FAILED, failure) from failure

    async def _prefill(
        self, call: Call, prefill: Member, asked: bytes, read: Callable[[bytes], T | None], kept: Kept | None = None
    ) -> T:
        """Run the prefill leg; returns what ``read`` finds in its answer. Raises :class:`HandOverFailed`."""
        started = time.monotonic()
        evidence = self._evidence(prefill, self._metrics)
        try:
            with self._pool.using(prefill), self._steering.prefilling(prefill, call.hint):
                answer = await self._exchange.prefill(call, prefill, asked, kept)
            found = read(answer.body)
            if found is None:
                raise PrefillWithoutKV(prefill.instance.name)
        except ProxyError as error:
            evidence.settle(error)
            if not isinstance(error, EngineFailure):
                raise
            without_kv = isinstance(error, PrefillWithoutKV)
            raise HandOverFailed(Bypass.PREFILL_WITHOUT_KV if without_kv else Bypass.PREFILL_FAILED, error) from error
        evidence.settle(None)
        self._metrics.handed_off(time.monotonic() - started)
        return found

    async def _decode(
        self, call: Call, prefill: Member, body: bytes, next_decode: NextDecode, kept: Kept | None = None
    ) -> Answer:
        unreachable: EngineUnreachable | None = None
        while (decode := next_decode(unreachable.instance if unreachable else None)) is not None:
            if unreachable is not None:
                self._metrics.retried(Retry.DECODE)
            call.record.decode = decode.instance.name
            pair = self._pool.pair(prefill, decode)
            trial = pair.breaker.begin()
            evidence = self._evidence(decode, self._metrics, pair)
            try:
                return await self._exchange.serve(call, decode, body, evidence, kept)
            except EngineUnreachable as exc:
                unreachable = exc
            except (EngineError, EngineAborted) as exc:
                raise HandOverFailed(Bypass.DECODE_FAILED, exc) from exc
            finally:
                if trial:
                    pair.breaker.give_back()
        if kept is None and not call.waits_for_prefill:  # else it is given back, or prefill is told to stop
            self._metrics.kv_stranded.inc()
        if unreachable is not None:
            raise HandOverFailed(Bypass.DECODE_FAILED, unreachable)
        raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No decode instance can take the KV over any more."))


async def _discard(answer: Answer) -> None:
    if isinstance(answer, Stream):
        await answer.resources.aclose()
