"""The only writer of health: probes all instances, for ever."""

import asyncio
import logging

from proxy.agreement import Identity, contradiction
from proxy.engine import EngineClient
from proxy.errors import EngineFailure
from proxy.health.identity import identify
from proxy.health.probe import Finding, probe
from proxy.pool import Member, Pool

logger = logging.getLogger(__name__)

MISSES = 3
"""Silent probes in a row that make an instance unhealthy."""


class HealthMonitor:
    """Watches a pool; ``interval`` and ``timeout`` are seconds."""

    def __init__(self, pool: Pool, client: EngineClient, *, interval: float, timeout: float) -> None:
        self._pool = pool
        self._client = client
        self._interval = interval
        self._timeout = timeout

    async def run(self) -> None:
        """Probe in every interval until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.check()
            except Exception:  # if this task died, health would stay as it is for ever
                logger.exception("probing failed; trying again in %s s", self._interval)

    async def check(self) -> None:
        """Probe every instance once."""
        async with asyncio.TaskGroup() as tasks:
            for member in self._pool.members:  # as they are now: the topology may change
                tasks.create_task(self._check(member), name=f"probe {member.instance.name}")

    async def _check(self, member: Member) -> None:
        instance = member.instance
        finding = await probe(self._client, instance, self._timeout)
        member.misses = member.misses + 1 if finding is Finding.SILENT else 0
        healthy = is_healthy(finding, member.misses, was=member.healthy)
        if healthy and not member.healthy:
            logger.info("%s is healthy", instance.name)
            self._pool.forgive(member)
        elif member.healthy and not healthy:
            logger.warning("%s is not healthy: %s", instance.name, finding)
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
            observed = await identify(self._client, instance, self._timeout)
        except (EngineFailure, TimeoutError):
            logger.info("%s does not say what it is; asking again at the next probe", instance.name)
            return
        if wrong := contradiction(Identity(instance.name, instance.fingerprint), observed):
            logger.warning("%s", wrong)
        self._pool.identify(member, observed)


def is_healthy(finding: Finding, misses: int, *, was: bool) -> bool:
    """Decision: slow is not dead until it was slow ``MISSES`` times in a row; refused is dead at once."""
    if finding is Finding.SILENT:
        return was and misses < MISSES
    return finding is Finding.WELL
