"""Follows the configuration file: what changes in it while the proxy runs takes effect without a restart.

The file is looked at, not signalled: so it works the same for several workers, for a ConfigMap that Kubernetes swaps
under a link, and for whoever edits it by hand. A faulty file changes nothing and is reported until it is right again.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from proxy.config import ConfigError, ProxyConfig, load
from proxy.health.monitor import HealthMonitor
from proxy.pool import Pool

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks at the file."""


class ConfigFollower:
    """Applies changes of topology and draining; ``problem`` says what is wrong with the file, empty when nothing is."""

    def __init__(
        self,
        path: Path,
        config: ProxyConfig,
        pool: Pool,
        monitor: HealthMonitor,
        follow: Callable[[ProxyConfig], None] | None = None,
    ) -> None:
        """``follow`` takes a new configuration over, if not the pool itself."""
        self._path = path
        self._config = config
        self._pool = pool
        self._follow = follow
        self._monitor = monitor
        self._seen = _signature(path)
        self.problem = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self.look()
            except Exception:  # if this task died, so would those beside it: nobody would probe any more
                logger.exception("%s: following it failed; looking again at its next change", self._path)

    async def look(self) -> None:
        """Look once."""
        signature = _signature(self._path)
        if signature == self._seen:
            return
        self._seen = signature
        try:
            config = load(self._path)
        except ConfigError as exc:
            self._complain(f"keeping the configuration as it was: {exc}")
            return
        (self._follow or self._pool.follow)(config)
        names = ", ".join(member.instance.name for member in self._pool.members)
        draining = ", ".join(member.instance.name for member in self._pool.members if member.draining)
        logger.info("now serving with %s; draining: %s", names or "none", draining or "none")
        later = restart_needed(self._config, config)
        self._complain(f"these settings need a restart: {', '.join(later)}" if later else "")
        await self._monitor.check()  # new instances serve at once, not after the next interval

    def _complain(self, problem: str) -> None:
        self.problem = problem
        if problem:
            logger.error("%s: %s", self._path, problem)


def restart_needed(running: ProxyConfig, wanted: ProxyConfig) -> list[str]:
    """Names of the settings that differ; they are read at the start only."""
    names = [field.name for field in fields(running.settings)]
    differ = [name for name in names if getattr(running.settings, name) != getattr(wanted.settings, name)]
    return [*differ, *(["discovery"] if running.discovery != wanted.discovery else [])]


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
