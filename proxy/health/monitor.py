"""The only writer of health: watches all instances, for ever, each at its own pace."""

import asyncio
import logging
import time

from proxy.agreement import Identity, contradiction
from proxy.engine import EngineClient
from proxy.errors import EngineFailure
from proxy.handoff import HANDOFFS
from proxy.health.identity import identify
from proxy.health.probe import Finding, ask_for_a_token, metrics_of, probe
from proxy.health.readings import Readings, symptom
from proxy.pool import Member, Pool
from proxy.topology import Role

logger = logging.getLogger(__name__)

_FIRST_PATIENCE = 2.0
"""Seconds, for an instance that has not answered yet: nothing is lost when it is asked again."""


class HealthMonitor:
    """Watches a pool. ``interval``: seconds between two looks; ``patience``: seconds of silence that mean frozen."""

    def __init__(self, pool: Pool, client: EngineClient, *, interval: float, patience: float) -> None:
        self._pool = pool
        self._client = client
        self._interval = interval
        self._patience = patience
        self._looking: set[str] = set()
        self._asking: set[str] = set()

    async def run(self) -> None:
        """Look in every interval until cancelled; an instance that is slow to answer holds nobody up."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(self._interval)
                for member in self._pool.members:  # as they are now: the topology may change
                    name = member.instance.name
                    if name not in self._looking:
                        tasks.create_task(self._guarded(member, tasks), name=f"probe {name}")

    async def check(self) -> None:
        """Look at every instance once, but do not wait for those that do not answer."""
        looks = [asyncio.create_task(self._look(member)) for member in self._pool.members]
        if looks:
            try:
                await asyncio.wait(looks, timeout=_FIRST_PATIENCE)
            finally:
                for look in looks:
                    look.cancel()
                await asyncio.gather(*looks, return_exceptions=True)

    async def _guarded(self, member: Member, tasks: asyncio.TaskGroup) -> None:
        name = member.instance.name
        self._looking.add(name)
        try:
            await self._look(member)
            answers = member.healthy or member.progress.frozen
            if answers and name not in self._asking and member.progress.wants_asking(time.monotonic()):
                tasks.create_task(self._ask(member), name=f"ask {name}")
        except Exception:  # if this task died, health would stay as it is for ever
            logger.exception("probing %s failed; trying again in %s s", name, self._interval)
        finally:
            self._looking.discard(name)

    async def _look(self, member: Member) -> None:
        patience = self._patience if member.healthy else _FIRST_PATIENCE
        finding = await probe(self._client, member.instance, patience)
        if finding is Finding.WELL:
            text = await metrics_of(self._client, member.instance, patience)
            readings = None if text is None else Readings.of(text)
            if text is not None and readings is not None:
                member.told, member.told_at = text, time.monotonic()
                self._learn(member, readings)
        if finding is Finding.WELL and member.progress.frozen:
            finding = Finding.FROZEN
        await self._conclude(member, finding)

    async def _conclude(self, member: Member, finding: Finding) -> None:
        name, healthy = member.instance.name, finding is Finding.WELL
        if healthy and not member.healthy:
            logger.info("%s is healthy", name)
            self._pool.forgive(member)
        elif member.healthy and not healthy:
            logger.warning("%s is not healthy: %s", name, finding)
        if healthy and not member.identified:
            await self._identify(member)
        if finding is Finding.REFUSED:
            member.load.forget()  # nothing listens: what comes back will have an empty KV cache
        member.healthy = healthy
        member.reason = "" if healthy else finding

    async def _identify(self, member: Member) -> None:
        """Ask it what it is before it gets requests; if it is too busy to say, again at the next probe."""
        instance = member.instance
        try:
            observed = await identify(self._client, instance, _FIRST_PATIENCE)
        except (EngineFailure, TimeoutError):
            logger.info("%s does not say what it is; asking again at the next probe", instance.name)
            return
        if wrong := contradiction(Identity(instance.name, instance.fingerprint), observed):
            logger.warning("%s", wrong)
        self._pool.identify(member, observed)

    def _learn(self, member: Member, now: Readings) -> None:
        """From an engine's own counters: whether it is another process, moves on, hands over well."""
        before, member.readings = member.readings, now
        pending = member.in_flight > 0 or now.pending > 0
        member.progress.see(time.monotonic(), (now.started, *now.movement), pending=pending)
        name = member.instance.name
        if before is not None and before.started != now.started:
            logger.warning("%s was started anew", name)
            member.load.forget()
            member.recently.forget()
            self._pool.forgive(member)
        elif before is not None and (reason := symptom(before, now, is_explained=self._has_bad_pair(member))):
            self._suspect(member, reason)
        member.recently.see(time.monotonic(), now.counts)
        if member.instance.role is Role.DECODE:
            handed_over = sum(pair.handed_over for pair in self._pool.pairs_of(member))
            least = self._least(now.block_size)
            if member.silence.see(now.received, handed_over, computed=now.computed, least=least):
                self._suspect(member, "it answers hand-overs, but by its own counter takes no KV: PD is silently off")

    def _least(self, block: int | None) -> int:
        """Tokens of prompts whose KV may well not move."""
        connector = self._pool.connector
        movement = None if connector is None else HANDOFFS[connector].movement
        return movement.piece(block or 1) if movement is not None and movement.whole_pieces else 0

    def _has_bad_pair(self, member: Member) -> bool:
        return any(pair.is_bad for pair in self._pool.pairs_of(member))

    def _suspect(self, member: Member, reason: str) -> None:
        reason = f"{member.instance.name}: {reason}"
        logger.warning("%s", reason)
        self._pool.suspect(member, reason)

    async def _ask(self, member: Member) -> None:
        """Ask an engine that does not move for one token."""
        name = member.instance.name
        self._asking.add(name)
        member.progress.asked(time.monotonic())
        try:
            await ask_for_a_token(self._client, member.instance)
        except EngineFailure as failure:
            logger.warning("asked for a token, %s", failure)
            await asyncio.sleep(self._interval)
            member.progress.asked_in_vain()
        except Exception:  # if this task died, so would those that watch all other instances
            logger.exception("asking %s for a token failed", name)
        else:
            member.progress.alive(time.monotonic())
        finally:
            self._asking.discard(name)
