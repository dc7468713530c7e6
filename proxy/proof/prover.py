"""Decides when canaries are sent through which pairs: at the start, when something speaks against one, regularly."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from proxy.handoff import HANDOFFS
from proxy.metrics import Metrics
from proxy.pair import Standing
from proxy.pool import Member, Pool
from proxy.proof.canary import Canary
from proxy.proof.proof import Proof, Verdict
from proxy.settings import Canary as Settings

logger = logging.getLogger(__name__)

_ENDING = 0.1
"""Seconds between two looks whether the proxy is asked to end before it has begun."""
_LOOK = 0.5
"""Seconds between two looks at what is due, if nobody calls."""
Couple = tuple[Member, Member]
_Key = tuple[str, str]


class Prover:
    """Keeps the pairs of a pool proven. Two canaries never meet at one decode instance: its counters tell of one."""

    def __init__(self, settings: Settings, pool: Pool, canary: Canary, metrics: Metrics) -> None:
        self._settings = settings
        self._pool = pool
        self._canary = canary
        self._metrics = metrics
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: dict[_Key, asyncio.Task[Proof | None]] = {}
        """Canaries that have not begun: whoever asks meanwhile gets what they will show."""
        self._running: set[_Key] = set()
        self._tasks: set[asyncio.Task[Proof | None]] = set()

    async def first(self, is_ending: Callable[[], bool]) -> None:
        """Prove what there is before requests come; takes no longer than one canary may, or than the proxy runs."""
        if not self._settings.enabled:
            return
        proofs = {self._begin(couple) for couple in self._due()}
        until = time.monotonic() + self._settings.timeout
        while proofs and time.monotonic() < until and not is_ending():
            _, proofs = await asyncio.wait(proofs, timeout=_ENDING)

    async def run(self) -> None:
        """Prove what is due, until cancelled."""
        if not self._settings.enabled:
            return
        while True:
            self._pool.attention.clear()
            for couple in (*self._due(), *self._oldest()):
                if _key(couple) not in self._running:
                    self._begin(couple)
            try:
                async with asyncio.timeout(_LOOK):
                    await self._pool.attention.wait()
            except TimeoutError:
                pass

    async def prove_all(self) -> dict[_Key, Proof | None]:
        """Prove all pairs of instances that serve and agree, now.

        What each canary has shown; ``None`` when it was cut short. Many askers at a time share canaries.
        """
        couples = self._present()
        proofs = await asyncio.gather(*(asyncio.shield(self._begin(couple)) for couple in couples))
        return dict(zip(map(_key, couples), proofs, strict=True))

    async def aclose(self) -> None:
        """Cut off what runs."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, couple: Couple) -> asyncio.Task[Proof | None]:
        """A canary that begins now or, after others at its decode instance, later."""
        key = _key(couple)
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._prove(couple), name=f"canary {' to '.join(key)}")
            self._waiting[key] = task
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Proof | None]) -> None:
        self._tasks.discard(task)
        for key in [key for key, each in self._waiting.items() if each is task]:
            del self._waiting[key]  # it was cut off before it began

    def _present(self) -> list[Couple]:
        present = [couple for couple in self._pool.couples() if all(member.usable for member in couple)]
        return [couple for couple in present if not self._pool.pair(*couple).refused]

    def _due(self) -> Iterable[Couple]:
        now = time.monotonic()
        return [couple for couple in self._present() if self._pool.pair(*couple).is_due(now)]

    def _oldest(self) -> Iterable[Couple]:
        """At most one of those that work: many pairs shall not be many canaries at a time."""
        now = time.monotonic()
        old = [couple for couple in self._present() if self._pool.pair(*couple).is_old(now, self._settings.interval)]
        return [min(old, key=lambda couple: self._pool.pair(*couple).looked_at)] if old else []

    async def _prove(self, couple: Couple) -> Proof | None:
        key = _key(couple)
        async with self._locks[key[1]]:
            del self._waiting[key]
            self._running.add(key)
            try:
                return await self._look(couple)
            finally:
                self._running.discard(key)

    async def _look(self, couple: Couple) -> Proof | None:
        prefill, decode = couple
        connector = self._pool.connector
        if connector is None or couple not in self._present():
            return None  # much may have happened while it waited
        pair = self._pool.pair(prefill, decode)
        was, began = pair.standing(time.monotonic()), time.monotonic()
        try:
            proof = await self._canary.prove(HANDOFFS[connector], prefill, decode)
        except Exception as exc:  # answers that nobody has thought of shall not make it try again and again at once
            logger.exception("the canary from %s to %s failed", pair.prefill, pair.decode)
            proof = Proof(Verdict.UNDECIDED, time.time(), f"the canary itself failed: {exc!r}")
        if self._pool.pair(prefill, decode) is not pair:
            return None  # one of them was started anew meanwhile
        now = time.monotonic()
        pair.learn(proof, began, now)
        self._metrics.canary(pair, proof)
        _tell(pair.prefill, pair.decode, was, pair.standing(now), proof.reason)
        return proof


def _key(couple: Couple) -> _Key:
    prefill, decode = couple
    return prefill.instance.name, decode.instance.name


def _tell(prefill: str, decode: str, was: Standing, now: Standing, reason: str) -> None:
    if now is Standing.PROVEN and was is not now:
        logger.info("proven: KV moves from %s to %s", prefill, decode)
    elif reason:
        logger.warning("not proven: KV from %s to %s: %s", prefill, decode, reason)
