"""Shape: what a canary through one pair has shown."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Of one canary."""

    PROVEN = "proven"
    """Decode took the prompt's KV from outside, and answered what it answers without."""
    RECOMPUTED = "recomputed"
    """Decode answered, but computed the prompt itself: PD is silently off."""
    WRONG_TEXT = "wrong_text"
    """Decode answers otherwise with prefill's KV than without: it is not the KV of the prompt."""
    FAILED = "failed"
    """There was no answer."""
    UNDECIDED = "undecided"
    """Something else was in the way, e.g. an instance that is too busy: nothing is known of the pair."""
    IMPOSSIBLE = "impossible"
    """The engines refuse what a canary needs: the pair is judged by its requests alone."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The last word on a pair."""

    verdict: Verdict
    at: float
    """Seconds since the epoch."""
    reason: str = ""
    """Why not; empty when it is proven."""
    tokens: int = 0
    """Of the prompt, that decode took from outside."""
    seconds: float | None = None
    """From sending the prompt to prefill until decode's whole answer."""
    bytes: int | None = None
    """Of KV that moved, where the engines count it."""
    transfer_seconds: float | None = None
    """That the transfer itself took, where the engines count it."""

    @property
    def bytes_per_second(self) -> float | None:
        """Of the transfer; small caches do not reach what the network can do."""
        return self.bytes / self.transfer_seconds if self.bytes and self.transfer_seconds else None
