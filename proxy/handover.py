"""A request's way through a prefill and a decode instance: the two legs, and the KV cache between them."""

import time
from collections.abc import Callable

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
from proxy.exchange import Answer, Call, Exchange
from proxy.handoff import Handoff
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.release import Kept, Releases
from proxy.steering import Steering


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
        metrics: Metrics,
        releases: Releases,
        evidence: type[Evidence] = Evidence,
    ) -> None:
        """``evidence``: what the legs' outcomes are held against."""
        self._exchange = exchange
        self._evidence = evidence
        self._pool = pool
        self._steering = steering
        self._metrics = metrics
        self._releases = releases

    async def through(
        self, call: Call, handoff: Handoff, prefill: Member, next_decode: Callable[[str | None], Member | None]
    ) -> Answer:
        """Prefill, hand over, decode; raises :class:`HandOverFailed`.

        ``next_decode`` is asked for the decode instance when the KV is there, and again, with the name of the one that
        could not be reached, as long as the KV waits for somebody to take it; ``None`` ends it.
        """
        record = call.record
        record.prefill, record.decode = prefill.instance.name, None
        kept = Kept(self._releases, handoff, prefill, call.headers)
        try:
            body = await self._prefill(call, handoff, prefill, kept)
        except PrefillWithoutKV as exc:
            raise HandOverFailed(Bypass.PREFILL_WITHOUT_KV, exc) from exc
        except EngineFailure as exc:
            raise HandOverFailed(Bypass.PREFILL_FAILED, exc) from exc
        try:
            return await self._decode(call, prefill, body, next_decode, kept)
        except BaseException:  # also when the client has left
            kept.give_back(body)
            raise

    async def _prefill(self, call: Call, handoff: Handoff, prefill: Member, kept: Kept) -> bytes:
        """Run the prefill leg; returns the body for decode."""
        started = time.monotonic()
        evidence = self._evidence(prefill, self._metrics)
        try:
            with self._pool.using(prefill), self._steering.prefilling(prefill, call.hint):
                answer = await self._exchange.prefill(call, prefill, handoff.prefill_body(call.completion), kept)
            body = handoff.decode_body(call.completion, answer.body)
            if body is None:
                raise PrefillWithoutKV(prefill.instance.name)
        except ProxyError as error:
            evidence.settle(error)
            raise
        evidence.settle(None)
        self._metrics.handoff.observe(time.monotonic() - started)
        return body

    async def _decode(
        self, call: Call, prefill: Member, body: bytes, next_decode: Callable[[str | None], Member | None], kept: Kept
    ) -> Answer:
        unreachable: EngineUnreachable | None = None
        while (decode := next_decode(unreachable.instance if unreachable else None)) is not None:
            call.record.decode = decode.instance.name
            pair = self._pool.pair(prefill, decode)
            trial = pair.breaker.begin()
            try:
                evidence = self._evidence(decode, self._metrics, pair)
                return await self._exchange.serve(call, decode, body, evidence, kept)
            except EngineUnreachable as exc:
                unreachable = exc
            except (EngineError, EngineAborted) as exc:
                raise HandOverFailed(Bypass.DECODE_FAILED, exc) from exc
            finally:
                if trial:
                    pair.breaker.give_back()
        if unreachable is not None:
            raise HandOverFailed(Bypass.DECODE_FAILED, unreachable)
        raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No decode instance can take the KV over any more."))
