"""Decision: how long to wait before an instance that ended by itself is started again, and when not to any more."""

MOST_CRASHES = 3
CALM = 300.0
"""Seconds of service: so many ends with less between them are a crash loop, however long the starts take."""
FIRST_PAUSE = 1.0
"""Seconds before the first restart; twice as long before each further one."""


class Crashes:
    """Of one instance."""

    def __init__(self) -> None:
        self._count = 0

    def pause(self, served: float) -> float | None:
        """It has crashed after so many seconds of service: seconds until it is started; ``None`` for a crash loop."""
        self._count = 1 if served >= CALM else self._count + 1
        return None if self._count >= MOST_CRASHES else FIRST_PAUSE * 2.0 ** (self._count - 1)

    def forget(self) -> None:
        """Somebody has looked into it."""
        self._count = 0
