"""What an engine's own counters say, as far as it matters for hand-overs and for being alive."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from proxy import engine_instruments as known
from proxy.engine_samples import samples
from proxy.health.recently import Counts

_RECEIVED = "external_kv_transfer"
_COMPUTED = "local_compute"
_SUMMED = (
    known.PROCESS_START,
    known.GENERATED,
    f"{known.TRANSFERRED}_sum",
    known.FAILED_TRANSFERS,
    known.EXPIRED,
    known.READ_LATE,
    f"{known.TRANSFER_TIME}_sum",
    known.PREEMPTIONS,
    known.RUNNING,
    known.WAITING,
    known.PROMPT_TOKENS,
    known.DRAFTS,
    known.DRAFT_TOKENS,
    known.ACCEPTED,
)
_NAMES = frozenset({*_SUMMED, known.USAGE, known.PROMPT_TOKENS_BY_SOURCE, known.CACHE_CONFIG})


@dataclass(frozen=True, slots=True)
class Readings:
    """Sums over the engines of one server (it may be data parallel). Counts since it was started."""

    started: float | None
    """Seconds since the epoch."""
    block_size: int | None
    """Tokens."""
    kv_dtype: str
    """As the engine was told; ``auto`` for the model's own."""
    prompt_tokens: float
    """Of requests that have got their first token."""
    received: float | None
    """Prompt tokens whose KV came from another engine; ``None`` when it does not say."""
    computed: float
    """Prompt tokens whose KV it has computed itself."""
    generated: float
    running: float
    """Requests."""
    waiting: float
    """Requests that have no place yet, or whose KV has not come."""
    preempted: float
    usage: float
    """Of the KV cache, 0 to 1; of the engine that has the fullest."""
    moved_bytes: float
    """Of KV caches, counted by the side that started the transfers."""
    moved_seconds: float
    failed_transfers: float
    """Hand-shakes and notifications included."""
    expired: float
    """KV caches that nobody took before their lease ended."""
    late: float
    """Notices that a KV cache was read, after it may have been overwritten."""
    drafts: float
    draft_tokens: float
    accepted: float
    """Of the draft tokens."""

    @property
    def movement(self) -> tuple[float, ...]:
        """Changes with every few steps of an engine that works, and only the engine itself changes it."""
        return self.prompt_tokens, self.generated, self.running, self.waiting, self.preempted, self.usage

    @property
    def counts(self) -> Counts:
        """What is of interest of the last minute."""
        return Counts(self.prompt_tokens, self.received, self.generated, self.drafts, self.draft_tokens, self.accepted)

    @property
    def pending(self) -> float:
        """Requests that the engine knows of."""
        return self.running + self.waiting

    @classmethod
    def of(cls, text: str) -> Self | None:
        """From the text of ``/metrics``; ``None`` when that is not vLLM's, or statistics are off."""
        try:
            found = samples(text, _NAMES)
        except ValueError:
            return None
        sums: defaultdict[str, float] = defaultdict(float)
        labels: dict[str, str] = {}
        received: float | None = None
        usage = 0.0
        for sample in found:
            name = sample.name
            if name == known.PROMPT_TOKENS_BY_SOURCE:
                if sample.labels.get("source") == _RECEIVED:
                    received = (received or 0.0) + sample.value
                elif sample.labels.get("source") == _COMPUTED:
                    sums[_COMPUTED] += sample.value
            elif name == known.CACHE_CONFIG:
                labels = sample.labels
            elif name == known.USAGE:
                usage = max(usage, sample.value)
            else:
                sums[name] += sample.value
        if known.GENERATED not in sums:
            return None
        block = labels.get("block_size", "")
        return cls(
            started=sums.get(known.PROCESS_START),
            block_size=int(block) if block.isdecimal() else None,
            kv_dtype=labels.get("cache_dtype", ""),
            prompt_tokens=sums[known.PROMPT_TOKENS],
            received=received,
            computed=sums[_COMPUTED],
            generated=sums[known.GENERATED],
            running=sums[known.RUNNING],
            waiting=sums[known.WAITING],
            preempted=sums[known.PREEMPTIONS],
            usage=usage,
            moved_bytes=sums[f"{known.TRANSFERRED}_sum"],
            moved_seconds=sums[f"{known.TRANSFER_TIME}_sum"],
            failed_transfers=sums[known.FAILED_TRANSFERS],
            expired=sums[known.EXPIRED],
            late=sums[known.READ_LATE],
            drafts=sums[known.DRAFTS],
            draft_tokens=sums[known.DRAFT_TOKENS],
            accepted=sums[known.ACCEPTED],
        )


def symptom(before: Readings, now: Readings, *, is_explained: bool = False) -> str:
    """What has happened since that makes hand-overs of an instance suspect; empty for nothing. Two of one process.

    With ``is_explained``, one of its pairs is known not to work: that transfers fail speaks against no other one.
    """
    # vLLM also counts one for each client that leaves decode's answer, if that is not streamed: prefill is told twice.
    if (late := now.late - before.late) > 0 and now.expired > 0:
        return f"KV was read after its lease, by its own counter: {late:.0f} answers may be wrong"
    if not is_explained and (failed := now.failed_transfers - before.failed_transfers) > 0:
        return f"{failed:.0f} transfers failed, by its own counter"
    return ""
