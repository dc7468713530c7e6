"""Decides when canaries are sent through which pairs: at the start, when something speaks against one, regularly."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable

from proxy.handoff import HANDOFFS
from proxy.metrics import Metrics
from proxy.pair import Standing
from proxy.pool import Member, Pool
from proxy.proof.canary import Canary
from proxy.proof.proof import Proof
from proxy.settings import Canary as Settings

logger = logging.getLogger(__name__)

_LOOK = 0.5
"""Seconds between two looks at what is due, if nobody calls."""
Couple = tuple[Member, Member]


class Prover:
    """Keeps the pairs of a pool proven. Two canaries never meet at one decode instance: its counters tell of one."""

    def __init__(self, settings: Settings, pool: Pool, canary: Canary, metrics: Metrics) -> None:
        self._settings = settings
        self._pool = pool
        self._canary = canary
        self._metrics = metrics
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._running: set[tuple[str, str]] = set()

    async def first(self) -> None:
        """Prove what there is before requests come; takes no longer than one canary may."""
        if not self._settings.enabled:
            return
        proofs = [asyncio.create_task(self._prove(couple)) for couple in self._due()]
        if proofs:
            await asyncio.wait(proofs, timeout=self._settings.timeout)

    async def run(self) -> None:
        """Prove what is due, until cancelled."""
        if not self._settings.enabled:
            return
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._pool.attention.clear()
                for couple in (*self._due(), *self._oldest()):
                    if _key(couple) not in self._running:
                        tasks.create_task(self._prove(couple), name=f"canary {' to '.join(_key(couple))}")
                try:
                    async with asyncio.timeout(_LOOK):
                        await self._pool.attention.wait()
                except TimeoutError:
                    pass

    async def prove_all(self) -> dict[tuple[str, str], Proof | None]:
        """Prove all pairs of instances that serve and agree, now.

        What each canary has shown; ``None`` when it was cut short.
        """
        couples = self._present()
        proofs = await asyncio.gather(*map(self._prove, couples))
        return dict(zip(map(_key, couples), proofs, strict=True))

    def _present(self) -> list[Couple]:
        present = [couple for couple in self._pool.couples() if all(member.usable for member in couple)]
        return [couple for couple in present if not self._pool.pair(*couple).refused]

    def _due(self) -> Iterable[Couple]:
        now = time.monotonic()
        return [couple for couple in self._present() if self._pool.pair(*couple).is_due(now)]

    def _oldest(self) -> Iterable[Couple]:
        """At most one of those that work: many pairs shall not be many canaries at a time."""
        waiting = [
            (proof.at, couple)
            for couple in self._present()
            if (proof := self._pool.pair(*couple).proof) is not None
            and proof.at + self._settings.interval <= time.time()
            and self._pool.pair(*couple).admits(time.monotonic())
        ]
        return [min(waiting, key=lambda each: each[0])[1]] if waiting else []

    async def _prove(self, couple: Couple) -> Proof | None:
        prefill, decode = couple
        key = _key(couple)
        connector = self._pool.connector
        if connector is None:
            return None
        self._running.add(key)
        try:
            async with self._locks[key[1]]:
                pair = self._pool.pair(prefill, decode)
                was, began = pair.standing(time.monotonic()), time.monotonic()
                proof = await self._canary.prove(HANDOFFS[connector], prefill, decode)
                if self._pool.pair(prefill, decode) is not pair:
                    return None  # one of them was started anew meanwhile
                now = time.monotonic()
                pair.learn(proof, began, now)
                self._metrics.canary(pair, proof)
                _tell(pair.prefill, pair.decode, was, pair.standing(now), proof.reason)
                return proof
        except Exception:  # if this task died, so would all that watches the deployment
            logger.exception("the canary from %s to %s failed", *key)
            return None
        finally:
            self._running.discard(key)


def _key(couple: Couple) -> tuple[str, str]:
    prefill, decode = couple
    return prefill.instance.name, decode.instance.name


def _tell(prefill: str, decode: str, was: Standing, now: Standing, reason: str) -> None:
    if now is Standing.PROVEN and was is not now:
        logger.info("proven: KV moves from %s to %s", prefill, decode)
    elif reason:
        logger.warning("not proven: KV from %s to %s: %s", prefill, decode, reason)
