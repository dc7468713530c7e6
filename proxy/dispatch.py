"""The story of a request: choose, prefill, hand over, open decode; and what happens when one of these fails.

Whose fault is a failure? An engine's 4xx is the client's and goes to it unchanged, with no other engine asked. A client
that leaves is nobody's. Everything else is the instance's. After the first byte of the answer nothing is tried again.
"""

import logging
import time
from collections.abc import Set
from dataclasses import replace
from functools import partial

from proxy.bootstrap import Bootstrap
from proxy.completion import Bypass, bypass
from proxy.engine import EngineClient
from proxy.errors import EngineFailure, EngineUnreachable, NoInstance
from proxy.evidence import Evidence
from proxy.exchange import Answer, Call, Exchange
from proxy.handoff import HANDOFFS, Handoff
from proxy.handover import HandOver, HandOverFailed
from proxy.hint import NO_HINT
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.record import Retry, ServedBy
from proxy.release import Releases
from proxy.settings import FailurePolicy, Settings
from proxy.steering import Steering
from proxy.topology import Role

logger = logging.getLogger(__name__)


class Dispatcher:
    """Answers requests with the instances of the pool that their route names."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        steering: Steering,
        client: EngineClient,
        metrics: Metrics,
        releases: Releases,
    ) -> None:
        self._settings = settings
        self._exchange = Exchange(settings.timeouts, pool, steering, client)
        bootstrap = Bootstrap(client, settings.timeouts.prefill)
        self._handover = HandOver(self._exchange, pool, steering, bootstrap, metrics, releases)
        self._pool = pool
        self._steering = steering
        self._metrics = metrics

    async def answer(self, call: Call) -> Answer:
        """The answer, at the latest when its first event has come; raises :class:`proxy.errors.ProxyError`."""
        hint = self._steering.hint(call.completion, call.headers)
        call = call if hint is NO_HINT else replace(call, hint=hint)
        pool, connector = call.route.pool, self._pool.connector
        if connector is None or not self._pool.uses_pd(pool):
            return await self._aggregated(call, None)
        reason = bypass(call.completion)
        if reason is not None:
            return await self._aggregated(call, reason)
        if self._steering.conditional:
            decode = self._steering.choose(self._pool.candidates(Role.DECODE, pool=pool), call.hint)
            reason = None if decode is None else self._steering.instead_of_pd(call.hint, decode)
            if reason is not None:
                return await self._aggregated(call, reason, on=decode)
        return await self._disaggregated(call, HANDOFFS[connector])

    async def _disaggregated(self, call: Call, handoff: Handoff) -> Answer:
        """Through one pair, or by policy through others after it; failing that, what the policy wants instead."""
        tried: set[str] = set()
        failed: HandOverFailed | None = None
        retry = self._settings.retry
        for _ in range(retry.attempts if call.policy is FailurePolicy.RETRY else 1):
            if failed is not None and time.monotonic() > call.record.started + retry.within:
                break
            if failed is not None:
                self._metrics.retried(Retry.PAIR)
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
        """With instances that were not tried; raises :class:`HandOverFailed`."""
        prefill = self._choose_prefill(call, tried)
        next_decode = partial(self._choose_decode, call, prefill, tried)
        answer = await self._handover.through(call, handoff, prefill, next_decode)
        call.record.path = ServedBy.PD
        return answer

    def _choose_prefill(self, call: Call, tried: Set[str]) -> Member:
        """One from which a decode instance may take KV over."""
        pool = call.route.pool
        decodes = self._pool.candidates(Role.DECODE, without=tried, pool=pool)
        if not decodes:
            raise HandOverFailed(Bypass.NO_DECODE, NoInstance("No decode instance serves now."))
        prefills = self._pool.candidates(Role.PREFILL, without=tried, pool=pool)
        if not prefills:
            raise HandOverFailed(Bypass.NO_PREFILL, NoInstance("No prefill instance serves now."))
        with_partner = [prefill for prefill in prefills if self._pool.partners(prefill, decodes)]
        chosen = self._steering.choose(with_partner, call.hint)
        if chosen is None:
            # Paths and digests of models are for those who operate the proxy.
            logger.info("%s: no pair works now: %s", call.record.id.internal, self._pool.complaints())
            raise HandOverFailed(Bypass.NO_PAIR, NoInstance("No prefill and decode instance work together now."))
        return chosen

    def _choose_decode(self, call: Call, prefill: Member, tried: set[str], unreachable: str | None) -> Member | None:
        """Late, since others are chosen while prefill runs."""
        if unreachable is not None:
            tried.add(unreachable)
        decodes = self._pool.candidates(Role.DECODE, without=tried, pool=call.route.pool)
        return self._steering.choose(self._pool.partners(prefill, decodes), call.hint)

    async def _instead(self, call: Call, failed: "HandOverFailed", tried: set[str]) -> Answer:
        """When KV cannot be handed over: by policy the failure, or one instance serves the request alone."""
        logger.warning("%s: %s (%s)", call.record.id.internal, failed.reason, failed.failure)
        if call.policy is not FailurePolicy.AGGREGATE:
            raise failed.failure
        avoided = tried if isinstance(failed.failure, EngineUnreachable) else set()
        pool = call.route.pool
        if avoided and not self._pool.candidates(Role.AGGREGATED, Role.DECODE, without=avoided, pool=pool):
            raise failed.failure
        return await self._aggregated(call, failed.reason, avoided)

    async def _aggregated(
        self, call: Call, reason: Bypass | None, avoided: Set[str] = frozenset(), on: Member | None = None
    ) -> Answer:
        """By one instance; by others after it while nothing was sent, or when the policy says so."""
        tried = set(avoided)
        tries = self._settings.retry.attempts if call.policy is FailurePolicy.RETRY else 1
        failed: EngineFailure | None = None
        while (member := on or self._choose_alone(call, tried)) is not None:
            on = None
            if failed is not None:
                self._metrics.retried(Retry.ALONE)
            try:
                return await self._alone(call, reason, member)
            except EngineFailure as failure:
                failed = failure
                tries -= not isinstance(failure, EngineUnreachable)
                if not tries:
                    raise
                tried.add(failure.instance)
        raise failed or NoInstance("No decode or aggregated instance serves now: the proxy's /ready says why.")

    def _choose_alone(self, call: Call, tried: Set[str]) -> Member | None:
        pool = call.route.pool
        candidates = self._pool.candidates(Role.AGGREGATED, without=tried, pool=pool)
        others = candidates or self._pool.candidates(Role.DECODE, without=tried, pool=pool)
        return self._steering.choose(others, call.hint)

    async def _alone(self, call: Call, reason: Bypass | None, member: Member) -> Answer:
        record = call.record
        record.prefill, record.decode, record.bypass = None, member.instance.name, reason
        answer = await self._exchange.serve(call, member, call.completion.body, Evidence(member, self._metrics))
        record.path = ServedBy.AGGREGATED
        return answer
