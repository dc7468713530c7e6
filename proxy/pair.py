"""State: how hand-overs between one prefill and one decode instance went. Each may be well and the way between not."""

import time
from enum import StrEnum

from proxy.breaker import Breaker, State
from proxy.settings import Breaker as Limits


class Standing(StrEnum):
    """What is known of a pair."""

    UNTRIED = "untried"
    """Nothing was handed over since both run."""
    WORKING = "working"
    """The last hand-over succeeded."""
    FAILING = "failing"
    """The last one failed; it still gets requests."""
    OUT = "out"
    """Too many failed: it gets none for a while."""
    TRIAL = "trial"
    """The while is over: the next request shows whether it works again."""
    REFUSED = "refused"
    """The two are not alike enough: it gets none until they are."""


class Pair:
    """Counts since both instances run."""

    def __init__(self, prefill: str, decode: str, limits: Limits) -> None:
        self.prefill, self.decode = prefill, decode
        self.refused = ""
        """In what the two differ; empty when they agree. Written by the pool only."""
        self.breaker = Breaker(limits)
        self.handed_over = 0
        self.failed = 0
        self.last_handed_over: float | None = None
        """Seconds since the epoch."""

    def succeed(self) -> None:
        """Decode has answered with prefill's KV."""
        self.handed_over += 1
        self.last_handed_over = time.time()
        self.breaker.succeed()

    def fail(self, now: float, reason: str) -> bool:
        """Decode has answered an error to prefill's KV; whether requests are kept away from now on."""
        self.failed += 1
        return self.breaker.fail(now, reason, answers=True)

    def standing(self, now: float) -> Standing:
        """At this time of the monotonic clock."""
        if self.refused:
            return Standing.REFUSED
        match self.breaker.state(now):
            case State.OPEN:
                return Standing.OUT
            case State.HALF_OPEN:
                return Standing.TRIAL
            case State.CLOSED if self.breaker.reason:
                return Standing.FAILING
            case State.CLOSED:
                return Standing.WORKING if self.handed_over else Standing.UNTRIED
