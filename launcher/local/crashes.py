"""Decision: how long to wait before an instance that ended by itself is started again, and when not to any more."""

from collections import deque

MOST_CRASHES = 3
CRASH_WINDOW = 300.0
"""Seconds: this many ends by itself within this time are a crash loop."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds before a restart, doubled with every crash."""


class Crashes:
    """Of one instance."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def pause(self, now: float) -> float | None:
        """It has crashed at this moment: seconds until it is started again; ``None`` for a crash loop."""
        self._times.append(now)
        while now - self._times[0] > CRASH_WINDOW:
            self._times.popleft()
        if len(self._times) >= MOST_CRASHES:
            return None
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (len(self._times) - 1))

    def forget(self) -> None:
        """Somebody has looked into it."""
        self._times.clear()
