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
        self._computed_then = 0.0
        """Prompt tokens that it had computed when its counter last moved."""
        self._computed = 0.0
        """The same at the last look."""
        self._limit = _FIRST

    def see(self, received: float | None, handed_over: int, *, computed: float = 0.0, least: int = 0) -> bool:
        """Tokens that it has taken, hand-overs that it has answered; whether it is time to look into it.

        ``computed``: prompt tokens that it has computed itself. Of prompts with ``least`` tokens or fewer no KV moves,
        nor of those that it has cached: it has to have computed more than that for each hand-over.
        """
        moved = received != self._received or handed_over < self._seen
        without_trace, itself = self._seen - self._traced, self._computed - self._computed_then
        self._received, self._seen, self._computed = received, handed_over, computed
        if moved or received is None:
            self._traced, self._limit, self._computed_then = handed_over, _FIRST, computed
            return False
        if without_trace < self._limit or (least and itself <= least * without_trace):
            return False
        self._limit *= 2
        return True
