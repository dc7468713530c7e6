"""Shape: what of a request matters for the choice of its instances."""

from dataclasses import dataclass

BLOCK_TOKENS = 64
"""Prompts are compared in blocks of so many tokens; four of vLLM's own blocks."""


@dataclass(frozen=True, slots=True)
class Hint:
    """One request. Only what the configured policies and thresholds ask for is filled in."""

    tokens: int = 0
    """Of the prompt; an estimate unless the client sent token ids."""
    blocks: tuple[int, ...] = ()
    """One hash for each complete block of the prompt; each depends on all before it, so equal hashes mean equal
    beginnings. They are comparable within one process only."""
    session: str | None = None


NO_HINT = Hint()
