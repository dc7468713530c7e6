"""Decision: whether decode is given KV and takes none while all requests are answered, so that PD is silently off."""

_FIRST = 5
"""Hand-overs in a row that have to leave no trace; twice as many after each time that they turned out well."""


class Silence:
    """Of one decode instance."""

    def __init__(self) -> None:
        self._received: float | None = None
        self._traced = 0
        """Hand-overs when its counter last moved."""
        self._seen = 0
        """Hand-overs at the last look: its counter follows within moments, so these must have left a trace by now."""
        self._limit = _FIRST

    def see(self, received: float | None, handed_over: int) -> bool:
        """Tokens that it has taken, hand-overs that it has answered; whether it is time to look into it."""
        moved = received != self._received or handed_over < self._seen
        without_trace = self._seen - self._traced
        self._received, self._seen = received, handed_over
        if moved or received is None:
            self._traced, self._limit = handed_over, _FIRST
            return False
        if without_trace < self._limit:
            return False
        self._limit *= 2
        return True
