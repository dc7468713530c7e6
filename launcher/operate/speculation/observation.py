"""Shape: what was seen of engines that generate, in one window of time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one engine or several, in one window or several."""

    tokens: float = 0.0
    """Generated."""
    requests: float = 0.0
    """That ended and told their time by output token."""
    batch: float = 0.0
    """Requests that an engine computed, on average over the moments in which it computed any; 0 when it never did."""
    tpot: float | None = None
    """Mean seconds by output token of these requests; ``None`` without any."""
    drafts: float = 0.0
    """Steps in which tokens were drafted."""
    drafted: float = 0.0
    accepted: float = 0.0
    by_position: tuple[float, ...] = ()
    """Accepted at each position of a draft."""

    @classmethod
    def of(cls, traffic: Iterable["Traffic"]) -> Self:
        """All of it: loads weighed by tokens, times by requests."""
        parts = [*traffic]
        tokens, requests = sum(each.tokens for each in parts), sum(each.requests for each in parts)
        spent = sum((each.tpot or 0.0) * each.requests for each in parts)
        positions = max((len(each.by_position) for each in parts), default=0)
        return cls(
            tokens=tokens,
            requests=requests,
            batch=sum(each.batch * each.tokens for each in parts) / tokens if tokens else 0.0,
            tpot=spent / requests if requests else None,
            drafts=sum(each.drafts for each in parts),
            drafted=sum(each.drafted for each in parts),
            accepted=sum(each.accepted for each in parts),
            by_position=tuple(
                sum(each.by_position[at] for each in parts if at < len(each.by_position)) for at in range(positions)
            ),
        )

    @property
    def acceptance(self) -> float | None:
        """Accepted of drafted tokens."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def acceptance_length(self) -> float | None:
        """Tokens by step in which tokens were drafted, the model's own included."""
        return 1.0 + self.accepted / self.drafts if self.drafts else None

    def accepted_at(self, position: int) -> float | None:
        """Share of drafts of which the token at this position, from 0, was accepted."""
        return self.by_position[position] / self.drafts if self.drafts and position < len(self.by_position) else None


@dataclass(frozen=True, slots=True)
class Seen:
    """One engine in one window. Counters that began again have lost only what was counted before that."""

    engine: str
    cap: int
    """Draft tokens by step that it may draft at most; 0: speculation is off."""
    traffic: Traffic
    is_whole: bool = True
    """It served all of the window, and did not just start: its caches are warm, its kernels compiled."""


Window = tuple[Seen, ...]
"""All engines that can speculate."""
