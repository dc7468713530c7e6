"""State: how hand-overs between one prefill and one decode instance went. Each may be well and the way between not."""

import time
from collections.abc import Callable
from enum import StrEnum

from proxy.breaker import Breaker, State
from proxy.proof.proof import Proof, Verdict
from proxy.settings import Breaker as Limits

_DECIDES = (Verdict.RECOMPUTED, Verdict.WRONG_TEXT, Verdict.FAILED)
_PATIENCE = 3
"""Canaries in a row that decide nothing; then requests have to show what a pair is worth.

Without an end a pair that became suspect under load would never serve again: decode alone is busier than with prefill,
so no canary would get through until the load is gone.
"""


class Standing(StrEnum):
    """What is known of a pair."""

    UNTRIED = "untried"
    """Nothing was handed over since both run. Where canaries run, it gets no requests before one has come through."""
    PROVEN = "proven"
    """A canary came through, and nothing has failed since."""
    WORKING = "working"
    """No canary was sent; the last request's hand-over succeeded."""
    FAILING = "failing"
    """The last one failed; it still gets requests."""
    SUSPECT = "suspect"
    """Something speaks against it: it gets no requests until a canary comes through."""
    OUT = "out"
    """A canary failed, or too many hand-overs: it gets none for a while."""
    AWAY = "away"
    """One of the two does not serve."""
    TRIAL = "trial"
    """The while is over: the next request shows whether it works again."""
    REFUSED = "refused"
    """The two are not alike enough: it gets none until they are."""


class Pair:
    """Counts since both instances run. ``proves``: whether canaries run; ``wake`` is called when one is due."""

    def __init__(
        self,
        prefill: str,
        decode: str,
        limits: Limits,
        *,
        proves: bool = False,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.prefill, self.decode = prefill, decode
        self.refused = ""
        """In what the two differ; empty when they agree. Written by the pool only."""
        self.breaker = Breaker(limits)
        """Of requests."""
        self.handed_over = 0
        self.failed = 0
        self.last_handed_over: float | None = None
        """Seconds since the epoch."""
        self.proof: Proof | None = None
        """The last canary's that decided something, if any did."""
        self.looked_at = float("-inf")
        """When the last canary ended, whatever it has shown, by the monotonic clock."""
        self._proves = proves
        self._wake = wake
        self._canaries = Breaker(limits)
        self._suspicion = ""
        self._suspected_at = float("-inf")
        self._decided_at = float("-inf")
        self._undecided = 0
        """Canaries in a row, since something last spoke against it."""

    @property
    def reason(self) -> str:
        """What speaks against it; empty for nothing."""
        if self.refused:
            return self.refused
        if self._suspicion:
            return self._suspicion
        if self.proof is not None and self.proof.reason:
            return self.proof.reason
        return self.breaker.reason if self.standing(time.monotonic()) is not Standing.PROVEN else ""

    def succeed(self) -> None:
        """Decode has answered with prefill's KV."""
        self.handed_over += 1
        self.last_handed_over = time.time()
        self.breaker.succeed()

    def fail(self, now: float, reason: str) -> bool:
        """Decode has answered an error to prefill's KV; whether requests are kept away from now on."""
        self.failed += 1
        opened = self.breaker.fail(now, reason, answers=True)
        return self.suspect(now, reason) or opened

    def suspect(self, now: float, reason: str) -> bool:
        """Something speaks against it; whether requests are kept away, until a canary comes through."""
        if not self._proves or (self.proof is not None and self.proof.verdict is Verdict.IMPOSSIBLE):
            return False
        self._suspicion, self._suspected_at, self._undecided = reason, now, 0
        self._wake()
        return True

    def learn(self, proof: Proof, began: float, now: float) -> None:
        """A canary that began then has ended now."""
        self.looked_at = now
        self._undecided = self._undecided + 1 if proof.verdict is Verdict.UNDECIDED else 0
        if proof.verdict in _DECIDES:
            self._canaries.fail(now, proof.reason, answers=True, at_once=True)
        elif proof.verdict is Verdict.UNDECIDED:
            self._canaries.fail(now, proof.reason, answers=True, at_once=True)
            if self.proof is not None and self.proof.verdict is not Verdict.UNDECIDED:
                return  # what is known stays known
        else:
            self._canaries.succeed()
            if self._suspected_at <= began:
                self._suspicion = ""
        self.proof, self._decided_at = proof, now

    def admits(self, now: float) -> bool:
        """Whether a request may go this way."""
        if self.refused:
            return False
        if self._proves and not self._trusted and (self._undecided < _PATIENCE or self._is_broken):
            return False
        return self.breaker.admits(now)

    def is_due(self, now: float) -> bool:
        """Whether a canary has to show if requests may go this way."""
        return self._proves and not self.refused and not self._trusted and self._canaries.state(now) is not State.OPEN

    def is_old(self, now: float, interval: float) -> bool:
        """Whether it works, and the last canary that decided something was so many seconds ago.

        One that decided nothing is sent again after a while only, and after those of other pairs.
        """
        return (
            self.proof is not None
            and now >= self._decided_at + interval
            and self._canaries.state(now) is not State.OPEN
            and self.admits(now)
        )

    @property
    def is_bad(self) -> bool:
        """Whether a canary or a hand-over has shown that it does not work, and none has shown since that it does."""
        return bool(self._suspicion) or self._is_broken

    @property
    def _is_broken(self) -> bool:
        return self.proof is not None and self.proof.verdict in _DECIDES

    @property
    def _trusted(self) -> bool:
        if self.proof is None or self._suspicion:
            return False
        return self.proof.verdict in (Verdict.PROVEN, Verdict.IMPOSSIBLE)

    def standing(self, now: float) -> Standing:
        """At this time of the monotonic clock."""
        if self.refused:
            return Standing.REFUSED
        if self._is_broken:
            return Standing.OUT
        if self._suspicion:
            return Standing.SUSPECT
        proven = self.proof is not None and self.proof.verdict is Verdict.PROVEN
        match self.breaker.state(now):
            case State.OPEN:
                return Standing.OUT
            case State.HALF_OPEN:
                return Standing.TRIAL
            case State.CLOSED if proven:
                return Standing.PROVEN
            case State.CLOSED if self.breaker.reason:
                return Standing.FAILING
            case State.CLOSED:
                return Standing.WORKING if self.handed_over else Standing.UNTRIED
