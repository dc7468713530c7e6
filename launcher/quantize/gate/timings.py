"""Shape: how fast one served model was."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Of one request, in seconds."""

    ttft: float
    """From sending it to its first token."""
    total: float
    """To its last token."""
    tokens: int
    """Generated."""

    @property
    def tpot(self) -> float:
        """Per output token after the first."""
        return (self.total - self.ttft) / max(1, self.tokens - 1)


@dataclass(frozen=True, slots=True)
class SpeedSample:
    """Of one model: the same requests, one at a time and several at once; in the order of the requests."""

    alone: tuple[Timing, ...]
    together: tuple[Timing, ...]
    concurrency: int
    """Requests at once in ``together``: as soon as one is answered, the next is sent."""
    others: float
    """Share of this machine's processors, from 0 to 1, that something else used meanwhile."""
