"""The last ten minutes, a point for every five seconds."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric

from proxy import instruments as known
from proxy.overview.point import WANTED, Point, point
from proxy.overview.sample import Engine, Sample, take

Engines = Callable[[], Mapping[str, Engine]]

logger = logging.getLogger(__name__)

INTERVAL = 5.0
"""Seconds between two samples."""
_KEPT = 120


class History:
    """Samples the metrics of the whole deployment."""

    def __init__(
        self, families: Callable[[], Iterable[Metric]], engines: Engines, *, in_thread: bool, interval: float = INTERVAL
    ) -> None:
        """``families``: all metrics now; ``engines``: what engines told last.

        ``in_thread``: the metrics are read from files, which takes a while.
        """
        self.interval = interval
        self._families = families
        self._engines = engines
        self._in_thread = in_thread
        self._last: Sample | None = None
        self._points: deque[Point] = deque(maxlen=_KEPT)

    @property
    def points(self) -> tuple[Point, ...]:
        """Oldest first."""
        return tuple(self._points)

    def in_flight(self) -> dict[str, float]:
        """Requests of all workers by instance, at the last sample."""
        found = {} if self._last is None else self._last.values.get(known.IN_FLIGHT.name, {})
        return {dict(labels)["engine"]: count for labels, count in found.items()}

    async def run(self) -> None:
        """Sample until cancelled."""
        problem = ""
        while True:
            try:
                await self.sample()
                problem = ""
            except Exception as exc:  # if this task died, so would those beside it: nobody would probe any more
                if str(exc) != problem:
                    problem = str(exc)
                    logger.exception("sampling the metrics failed; trying again every %g s", self.interval)
            await asyncio.sleep(self.interval)

    async def sample(self) -> None:
        """Once; from the second time on it adds a point."""
        engines = self._engines()
        now = await asyncio.to_thread(self._take, engines) if self._in_thread else self._take(engines)
        if self._last is not None and now.clock > self._last.clock:
            self._points.append(point(self._last, now))
        self._last = now

    def _take(self, engines: Mapping[str, Engine]) -> Sample:
        return take(self._families(), WANTED, engines)
