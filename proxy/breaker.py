"""Decision: whether an instance, or a pair, gets requests, by how the last ones went.

::

    closed --failures in a row--> open --pause over--> half open --a request succeeds--> closed
                                   ^                      |
                                   +---- it fails: twice the pause

Times are seconds of any one clock. Requests that say nothing about the instance (the client left, or was wrong) are
not reported, except that a trial has to be given back.
"""

from enum import StrEnum

from proxy.settings import Breaker as Limits


class State(StrEnum):
    """As operators know it."""

    CLOSED = "closed"
    """Gets requests."""
    OPEN = "open"
    """Gets none."""
    HALF_OPEN = "half_open"
    """Gets one that shows whether it works again."""


class Breaker:
    """The recent past of one instance or pair."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures = 0
        self._pause = limits.pause
        self._opened: float | None = None
        self._trying = False
        self.reason = ""
        """The last failure; empty after a success."""
        self.answers = True
        """Whether it answered at its last failure: an open breaker is no use when there is no other instance."""

    def state(self, now: float) -> State:
        """At this time."""
        if self._opened is None:
            return State.CLOSED
        return State.HALF_OPEN if now >= self._opened + self._pause else State.OPEN

    def admits(self, now: float) -> bool:
        """Whether a request may be sent."""
        return self._opened is None or (not self._trying and now >= self._opened + self._pause)

    def begin(self) -> bool:
        """A request is sent; returns whether it is the trial, which :meth:`give_back` ends."""
        if self._opened is None or self._trying:
            return False
        self._trying = True
        return True

    def give_back(self) -> None:
        """The trial is over, whatever it showed."""
        self._trying = False

    def speaks(self) -> None:
        """An answer has begun: it works, though the next failure may show that it does not get to the end."""
        if self._opened is not None:
            self._opened = None
            self._failures = self._limits.failures - 1

    def succeed(self) -> None:
        """An answer is complete."""
        self._failures = 0
        self._pause = self._limits.pause
        self._opened = None
        self.reason = ""

    def fail(self, now: float, reason: str, *, answers: bool, at_once: bool = False) -> bool:
        """Count a failure, or with ``at_once`` as many as are allowed; returns whether that opened the breaker."""
        self._failures = self._limits.failures if at_once else self._failures + 1
        self.reason, self.answers = reason, answers
        if self._failures < self._limits.failures:
            return False
        if self._opened is not None:
            if now < self._opened + self._pause:
                return False  # requests that were on their way when it opened
            self._pause = min(2 * self._pause, self._limits.longest_pause)
        self._opened = now
        return True
