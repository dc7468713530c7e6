"""Decision: what engines did between two samples."""

from proxy.health.readings import Readings
from proxy.health.recently import Counts
from proxy.overview.sample import Sample
from proxy.topology import Role


class Work:
    """Of those that told something both times; ``None`` where nobody tells."""

    def __init__(self, before: Sample, now: Sample) -> None:
        told = [(before.engines[name], engine) for name, engine in now.engines.items() if name in before.engines]
        done = [(engine.role, _since(old.readings, engine.readings)) for old, engine in told]
        self._times = [engine.told_at - old.told_at for old, engine in told if engine.role is not Role.PREFILL]
        # Prefill generates one token of each request, which decode generates again.
        self._answering = [counts for role, counts in done if role is not Role.PREFILL]
        self._receiving = [counts for role, counts in done if role is Role.DECODE and counts.received is not None]

    @property
    def generated_per_second(self) -> float | None:
        """Tokens of answers; of each engine between the two times that it told them."""
        rates = [each.generated / time for each, time in zip(self._answering, self._times, strict=True) if time > 0]
        return sum(rates) if rates else None

    @property
    def acceptance(self) -> float | None:
        """Of the draft tokens, the part that was accepted."""
        return _ratio(self._answering, "accepted", "draft_tokens")

    @property
    def accepted_length(self) -> float | None:
        """Tokens by step that had a draft."""
        extra = _ratio(self._answering, "accepted", "drafts")
        return None if extra is None else 1 + extra

    @property
    def received_share(self) -> float | None:
        """Of the prompt tokens of decode, the part whose KV came from prefill."""
        return _ratio(self._receiving, "received", "prompt_tokens")


def _since(before: Readings, now: Readings) -> Counts:
    """Another process has counted since it was started, which was in between."""
    if before.started != now.started or not now.counts.may_follow(before.counts):
        return now.counts
    new, old = now.counts, before.counts
    return Counts(
        prompt_tokens=new.prompt_tokens - old.prompt_tokens,
        received=None if new.received is None else new.received - (old.received or 0.0),
        generated=new.generated - old.generated,
        drafts=new.drafts - old.drafts,
        draft_tokens=new.draft_tokens - old.draft_tokens,
        accepted=new.accepted - old.accepted,
    )


def _sum(counts: list[Counts], name: str) -> float:
    return float(sum(getattr(each, name) for each in counts))


def _ratio(counts: list[Counts], part: str, whole: str) -> float | None:
    return _sum(counts, part) / below if (below := _sum(counts, whole)) else None
