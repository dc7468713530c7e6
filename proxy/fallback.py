"""A request's way through pools: the one that its route names and, when nobody there can serve, the others after it."""

import logging
from dataclasses import replace
from typing import Protocol

from proxy.errors import EngineUnreachable, NoInstance
from proxy.exchange import Answer, Call
from proxy.metrics import Metrics
from proxy.pool import Pool
from proxy.pools import PoolFallback, by_name
from proxy.settings import FailurePolicy
from proxy.topology import Role

logger = logging.getLogger(__name__)


class Answering(Protocol):
    """Whoever answers requests."""

    async def answer(self, call: Call) -> Answer:
        """Raises :class:`proxy.errors.ProxyError`."""
        ...


class Fallback:
    """Answers by the pools of a deployment that has several."""

    def __init__(self, inner: Answering, pool: Pool, metrics: Metrics) -> None:
        """``inner`` serves a call by the pool of its route and no other."""
        self._inner = inner
        self._pool = pool
        self._metrics = metrics

    async def answer(self, call: Call) -> Answer:
        """As :class:`Answering`; the record tells which pool it is."""
        wanted, record = call.route.pool, call.record
        record.pool = by_name(wanted)
        try:
            return await self._within(call)
        except (NoInstance, EngineUnreachable) as exc:
            if call.route.fallback is PoolFallback.REFUSE or not _may_move(call, exc):
                raise
            failure = exc
        for name in self._pool.names:
            if name == wanted or not self._answers(name):
                continue
            if record.fell_back_from is None:
                record.fell_back_from = by_name(wanted)
                self._metrics.fell_back(by_name(wanted))
            record.pool, record.prefill, record.decode, record.bypass = by_name(name), None, None, None
            try:
                return await self._inner.answer(replace(call, route=replace(call.route, pool=name)))
            except (NoInstance, EngineUnreachable) as exc:
                if not _may_move(call, exc):
                    raise
                failure = exc
        raise failure

    async def _within(self, call: Call) -> Answer:
        name = call.route.pool
        if not self._answers(name):
            raise NoInstance(f"No instance of the pool {by_name(name)} serves now: the proxy's /ready says why.")
        return await self._inner.answer(call)

    def _answers(self, name: str) -> bool:
        """Whether anybody in a pool could generate an answer."""
        return bool(self._pool.candidates(Role.AGGREGATED, Role.DECODE, pool=name))


def _may_move(call: Call, failure: NoInstance | EngineUnreachable) -> bool:
    """A client that wants to be told of failed hand-overs is told; that there is nobody is none."""
    return isinstance(failure, NoInstance) or call.policy is not FailurePolicy.FAIL
