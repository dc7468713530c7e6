"""Keeps the pool as the cluster is.

All pods are read, then watched from that version on; when the watch ends, for whatever reason, all are read anew. So a
change that a watch has missed lives as long as one round at most. While the API server cannot be asked, the last
topology stays: engines do not need it to serve.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from random import Random

from proxy.config import Discovery, ProxyConfig
from proxy.discovery.api import DiscoveryError, Expired, Pods
from proxy.discovery.pace import FIRST, pause_after
from proxy.discovery.pods import Pod, topology_of, unready_of
from proxy.health.monitor import HealthMonitor
from proxy.pool import Pool

logger = logging.getLogger(__name__)

_ENDING = 0.1
"""Seconds between two looks whether the proxy is to end."""


class Discoverer:
    """Of one proxy."""

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
        self._unseen = "the cluster was not asked yet"
        self._faults = ""
        self.known_at = time.monotonic()
        """When the API server told last what there is, by ``time.monotonic``; before it did, when it was asked."""

    @property
    def problem(self) -> str:
        """Why the cluster cannot be seen, and what is wrong in it; empty when all is well."""
        return "; ".join(filter(None, (self._unseen, self._faults)))

    def follow(self, config: ProxyConfig) -> None:
        """Take over another configuration; the instances are those of the cluster all the same."""
        self._config = config
        self._apply(self._unseen)

    async def first(self, is_ending: Callable[[], bool]) -> None:
        """Read all pods once, if the proxy runs for as long; a failure is a problem like any later one."""
        reading = asyncio.create_task(self._read(), name="first look at the cluster")
        try:
            while not reading.done() and not is_ending():
                await asyncio.wait((reading,), timeout=_ENDING)
        finally:
            reading.cancel()
            (failure,) = await asyncio.gather(reading, return_exceptions=True)
        if isinstance(failure, DiscoveryError):
            self._judge(str(failure), self._faults)
        elif isinstance(failure, Exception):
            raise failure

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_at_new(), name="look at new pods")
            pause = FIRST
            while True:
                began, seen = time.monotonic(), True
                try:
                    await self._round()
                except Expired:
                    pass
                except DiscoveryError as exc:
                    seen = False
                    self._judge(str(exc), self._faults)
                except Exception as exc:  # if this task died, the topology would stay as it is for ever
                    seen = False
                    logger.exception("following the cluster failed; trying again")
                    self._judge(f"{type(exc).__name__}: {exc}", self._faults)
                pause = pause_after(pause, time.monotonic() - began, seen=seen)
                await asyncio.sleep(pause * self._random.uniform(0.5, 1.0))

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
                self._apply("")

    async def _read(self) -> str:
        pods, version = await self._pods.all()
        self._seen = {pod["metadata"]["name"]: pod for pod in pods}
        self.known_at = time.monotonic()
        self._apply("")
        return version

    def _apply(self, unseen: str) -> None:
        topology, draining, faults = topology_of(self._seen.values(), self._config.topology.connector)
        before = [(member.instance, member.draining) for member in self._pool.members]
        unready = unready_of(self._seen.values())
        self._pool.follow(replace(self._config, topology=topology, draining=draining), unready)
        after = [(member.instance, member.draining) for member in self._pool.members]
        if after != before:
            names = ", ".join(instance.name for instance in topology.instances)
            logger.info("the cluster has %s; they get nothing new: %s", names or "none", ", ".join(draining) or "none")
            self._changed.set()
        self._judge(unseen, "; ".join(faults))

    async def _look_at_new(self) -> None:
        """New instances serve as soon as they answer, not after the monitor's next interval."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._monitor.check()

    def _judge(self, unseen: str, faults: str) -> None:
        before = self.problem
        self._unseen, self._faults = unseen, faults
        if self.problem != before and self.problem:
            known = "instances stay as they are known" if unseen else "the others serve"
            logger.warning("the cluster: %s; %s", self.problem, known)
        elif before and not self.problem:
            logger.info("the cluster is seen")
