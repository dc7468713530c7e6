"""Shape: what the engines counted while they were measured."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counted:
    """Of all instances together, between the first and the last look; ``None``: no instance tells it."""

    seconds: float
    """Between these looks."""
    generated: float | None
    """Tokens of answers, by those that decode."""
    kv_received: float | None
    """Prompt tokens that decode got from prefill."""
    preemptions: float | None
    drafts: float | None
    drafted: float | None
    """Tokens."""
    accepted: float | None
    """Of these tokens."""
    accepted_by_position: tuple[float, ...]
    """Share of the drafts whose token at this place, from 0, was accepted; empty without speculation."""
    facts: Mapping[str, float | None]
    """As :data:`launcher.advice.facts.FACTS` explains them: queue, prefix hits, use of the KV cache..."""
    notes: tuple[str, ...] = ()
    """What could not be seen, and what speaks against relying on it."""

    @property
    def acceptance(self) -> float | None:
        """Accepted of drafted tokens; ``None`` where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def acceptance_length(self) -> float | None:
        """Tokens by step of the engine, the model's own included; ``None`` where nothing was drafted."""
        return 1 + self.accepted / self.drafts if self.drafts and self.accepted is not None else None
