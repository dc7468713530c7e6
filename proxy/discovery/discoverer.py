"""Keeps the pool as the cluster is.

All pods are read, then watched from that version on; when the watch ends, for whatever reason, all are read anew. So a
change that a watch has missed lives as long as one round at most. While the API server cannot be asked, the last
topology stays: engines do not need it to serve.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from random import Random

from proxy.config import Discovery, ProxyConfig
from proxy.discovery.api import DiscoveryError, Expired, Pods
from proxy.discovery.pods import Pod, topology_of
from proxy.health.monitor import HealthMonitor
from proxy.pool import Pool

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two tries to ask the API server."""


class Discoverer:
    """``problem`` says why the cluster cannot be seen, or what is wrong in it; empty when all is well."""

    def __init__(
        self,
        config: ProxyConfig,
        discovery: Discovery,
        pool: Pool,
        monitor: HealthMonitor,
        environ: Mapping[str, str],
    ) -> None:
        """``environ``: see :class:`Pods`."""
        self._config = config
        self._pool = pool
        self._monitor = monitor
        self._pods = Pods(discovery, environ)
        self._seen: dict[str, Pod] = {}
        self._changed = asyncio.Event()
        self._random = Random()
        self._pause = _FIRST_PAUSE
        self.problem = "the cluster was not asked yet"
        self.known_at = time.monotonic()
        """When the API server told last what there is, by ``time.monotonic``; before it did, when it was asked."""

    def follow(self, config: ProxyConfig) -> None:
        """Take over another configuration; the instances are those of the cluster all the same."""
        self._config = config
        self._apply()

    async def first(self) -> None:
        """Read all pods once; a failure is a problem like any later one."""
        try:
            await self._read()
        except DiscoveryError as exc:
            self._complain(str(exc))

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_at_new(), name="look at new pods")
            while True:
                try:
                    await self._round()
                except Expired:
                    self._pause = _FIRST_PAUSE
                except DiscoveryError as exc:
                    self._complain(str(exc))
                except Exception as exc:  # if this task died, the topology would stay as it is for ever
                    logger.exception("following the cluster failed; trying again")
                    self._complain(f"{type(exc).__name__}: {exc}")
                else:
                    self._pause = _FIRST_PAUSE  # in case that somebody on the way ends every watch at once
                await asyncio.sleep(self._pause * self._random.uniform(0.5, 1.0))
                self._pause = min(_LONGEST_PAUSE, self._pause * 2)

    async def aclose(self) -> None:
        """Close its connections."""
        await self._pods.aclose()

    async def _round(self) -> None:
        version = await self._read()
        async with aclosing(self._pods.changes(version)) as changes:
            async for kind, pod in changes:
                name = pod["metadata"]["name"]
                if kind == "DELETED":
                    self._seen.pop(name, None)
                else:
                    self._seen[name] = pod
                self.known_at = time.monotonic()
                self._apply()

    async def _read(self) -> str:
        pods, version = await self._pods.all()
        self._seen = {pod["metadata"]["name"]: pod for pod in pods}
        self.known_at = time.monotonic()
        self._apply()
        return version

    def _apply(self) -> None:
        topology, draining, faults = topology_of(self._seen.values(), self._config.topology.connector)
        before = [(member.instance, member.draining) for member in self._pool.members]
        self._pool.follow(replace(self._config, topology=topology, draining=draining))
        after = [(member.instance, member.draining) for member in self._pool.members]
        if after != before:
            names = ", ".join(instance.name for instance in topology.instances)
            logger.info("the cluster has %s; they get nothing new: %s", names or "none", ", ".join(draining) or "none")
            self._changed.set()
        self._complain("; ".join(faults))

    async def _look_at_new(self) -> None:
        """New instances serve as soon as they answer, not after the monitor's next interval."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._monitor.check()

    def _complain(self, problem: str) -> None:
        if problem != self.problem and problem:
            logger.warning("the cluster: %s; instances stay as they are known", problem)
        elif self.problem and not problem:
            logger.info("the cluster is seen")
        self.problem = problem
