"""Decision: whether an engine that has work gets on with it.

Engines answer ``/health`` while they are frozen, and are slow while they are busy. So neither counts: an engine is
frozen when it has work, none of its own counters moves, and it does not answer a request for one token either.
"""

_ASK_AFTER = 0.25
"""Of the patience: then it is asked for a token."""
_WAIT_FOR = 0.5
"""Of the patience, that it gets to answer that."""


class Progress:
    """Of one engine; ``patience`` and all times are seconds of one clock."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._movement: object = None
        self._alive: float | None = None
        self._asked: float | None = None
        self.frozen = False

    def see(self, now: float, movement: object, *, pending: bool) -> None:
        """What its counters say, and whether it has work, by its own account or by ours."""
        if movement != self._movement or not (pending or self.frozen):
            self._movement = movement
            self.alive(now)
            return
        waited = 0.0 if self._asked is None else now - self._asked
        if self._still(now) >= self._patience and waited >= _WAIT_FOR * self._patience:
            self.frozen = True

    def alive(self, now: float) -> None:
        """It has shown that it works."""
        self._alive = now
        self._asked = None
        self.frozen = False

    def wants_asking(self, now: float) -> bool:
        """Whether it is time to ask it for a token."""
        return self._asked is None and self._still(now) >= _ASK_AFTER * self._patience

    def asked(self, now: float) -> None:
        """It is asked from now on."""
        self._asked = now

    def asked_in_vain(self) -> None:
        """That came to nothing: it has to be asked again."""
        self._asked = None

    def _still(self, now: float) -> float:
        """Seconds without a sign of work."""
        return 0.0 if self._alive is None else now - self._alive
