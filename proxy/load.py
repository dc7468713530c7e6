"""State: the work of one instance, as far as this process has given it any."""

from math import exp

from proxy.hint import BLOCK_TOKENS, Hint
from proxy.prefixes import Prefixes

UNMEASURED_RATE = 50_000.0
"""Tokens per second that an instance is trusted with before it has shown its own rate. More than most can do: so
every instance is tried soon, and what it then shows replaces this."""
_LEG_TOKENS = 64
"""A leg whose prompt is cached takes a step of the engine all the same; so many tokens of computing."""
_WINDOW = 5.0
"""Seconds of work over which the rate is averaged, older work counting exponentially less."""
_STALE = 30.0
"""Seconds without work after which a measured rate is no longer believed: a slow start must not condemn for ever."""


class Load:
    """Prefill legs that run, how fast they went, and which prompts an instance has seen."""

    def __init__(self) -> None:
        self.prefixes = Prefixes()
        self.outstanding = 0
        """Tokens that the running legs have to compute."""
        self._tokens = 0.0
        self._seconds = 0.0
        self._last_end = float("-inf")

    def uncached(self, hint: Hint) -> int:
        """Tokens of a prompt that the instance has to compute."""
        return max(hint.tokens - self.prefixes.match(hint.blocks) * BLOCK_TOKENS, 0)

    def rate(self, now: float) -> float:
        """Tokens per second."""
        unknown = self._seconds <= 0
        if unknown or (self.outstanding == 0 and now > self._last_end + _STALE):
            return UNMEASURED_RATE
        return self._tokens / self._seconds

    def seconds(self, now: float, more: int = 0) -> float:
        """How long the running legs, and one of so many ``more`` tokens after them, will take."""
        return (self.outstanding + more) / self.rate(now)

    def begin(self, uncached: int) -> int:
        """A leg starts; returns its work in tokens, for :meth:`end`."""
        work = uncached + _LEG_TOKENS
        self.outstanding += work
        return work

    def end(self, work: int, started: float, now: float, *, done: bool) -> None:
        """A leg ended; only one that is ``done`` tells anything of the instance's rate.

        Legs wait for each other, so one has had the engine only since the one before it ended. Those that end together
        were computed together: the first accounts for the time, all of them for the tokens.
        """
        self.outstanding -= work
        if not done:
            return
        if now > self._last_end + _STALE:
            self._tokens = self._seconds = 0.0
        spent = max(now - max(started, self._last_end), 0.0)
        kept = exp(-spent / _WINDOW)
        self._tokens = self._tokens * kept + work
        self._seconds = self._seconds * kept + spent
        self._last_end = now

    def forget(self) -> None:
        """The instance was started anew: its KV cache is empty, and its rate unknown."""
        self.prefixes.forget()
        self._tokens = self._seconds = 0.0
