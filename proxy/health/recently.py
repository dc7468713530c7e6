"""Decision: what an instance's own counters say of the last minute."""

from collections import deque
from dataclasses import dataclass

_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one process since it was started, over all its data-parallel engines."""

    prompt_tokens: float
    received: float | None
    """Prompt tokens whose KV came from another instance; ``None`` when it does not say."""
    generated: float
    drafts: float
    draft_tokens: float
    accepted: float

    def may_follow(self, other: "Counts") -> bool:
        """Whether this can be the same process, later: nothing has become less."""
        pairs = zip(self._all, other._all, strict=True)
        return all(now >= before for now, before in pairs)

    @property
    def _all(self) -> tuple[float, ...]:
        received = self.received or 0.0
        return self.prompt_tokens, received, self.generated, self.drafts, self.draft_tokens, self.accepted


class Recently:
    """Of one instance; times are seconds of one clock. Counters that begin again are those of another process."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Counts]] = deque()

    def see(self, now: float, counts: Counts) -> None:
        """Its counters at this time."""
        if self._seen and not counts.may_follow(self._seen[-1][1]):
            self._seen.clear()
        self._seen.append((now, counts))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW:
            self._seen.popleft()

    def forget(self) -> None:
        """It does not run any more."""
        self._seen.clear()

    @property
    def received_share(self) -> float | None:
        """Of prompt tokens, those whose KV came from elsewhere; ``None`` when there were none, or it does not say."""
        if not self._seen or self._seen[-1][1].received is None:
            return None
        return self._over("received", "prompt_tokens")

    @property
    def acceptance(self) -> float | None:
        """Of the draft tokens, those accepted; ``None`` when there were none."""
        return self._over("accepted", "draft_tokens")

    @property
    def accepted_length(self) -> float | None:
        """Tokens by step that had a draft: those accepted, and the one that the model adds; ``None`` without drafts."""
        extra = self._over("accepted", "drafts")
        return None if extra is None else 1 + extra

    @property
    def generated_per_second(self) -> float | None:
        """Tokens; ``None`` before the second look."""
        if len(self._seen) < 2:
            return None
        return self._grown("generated") / (self._seen[-1][0] - self._seen[0][0])

    def _grown(self, name: str) -> float:
        first, last = (getattr(counts, name) or 0.0 for _, counts in (self._seen[0], self._seen[-1]))
        return float(last - first)

    def _over(self, one: str, other: str) -> float | None:
        if not self._seen or not (below := self._grown(other)):
            return None
        return self._grown(one) / below
