"""The last ten minutes, a point for every five seconds."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from proxy.overview.point import Point, point
from proxy.overview.sample import Sample

logger = logging.getLogger(__name__)

INTERVAL = 5.0
"""Seconds between two samples."""
_KEPT = 120


class History:
    """Points made of samples; ``take`` takes one."""

    def __init__(self, take: Callable[[], Sample], *, interval: float = INTERVAL) -> None:
        self.interval = interval
        self._take = take
        self._last: Sample | None = None
        self._points: deque[Point] = deque(maxlen=_KEPT)

    @property
    def points(self) -> tuple[Point, ...]:
        """Oldest first."""
        return tuple(self._points)

    async def run(self) -> None:
        """Sample until cancelled."""
        problem = ""
        while True:
            try:
                self.sample()
                problem = ""
            except Exception as exc:  # if this task died, so would those beside it: nobody would probe any more
                if str(exc) != problem:
                    problem = str(exc)
                    logger.exception("sampling the metrics failed; trying again every %g s", self.interval)
            await asyncio.sleep(self.interval)

    def sample(self) -> None:
        """Once; from the second time on it adds a point."""
        now = self._take()
        if self._last is not None and now.clock > self._last.clock:
            self._points.append(point(self._last, now))
        self._last = now
