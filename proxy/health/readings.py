"""What an engine's own counters say, as far as it matters for hand-overs and for being alive."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

_RECEIVED = "external_kv_transfer"
_COMPUTED = "local_compute"
_NAMES = (
    "process_start_time_seconds",
    "vllm:cache_config_info",
    "vllm:generation_tokens_total",
    "vllm:kv_cache_usage_perc",
    "vllm:nixl_bytes_transferred_sum",
    "vllm:nixl_num_failed_transfers_total",
    "vllm:nixl_num_kv_expired_reqs_total",
    "vllm:nixl_num_notifications_after_expiry_total",
    "vllm:nixl_xfer_time_seconds_sum",
    "vllm:num_preemptions_total",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:prompt_tokens_by_source_total",
    "vllm:prompt_tokens_total",
)


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
    """Of the KV cache, 0 to 1."""
    moved_bytes: float
    """Of KV caches, counted by the side that started the transfers."""
    moved_seconds: float
    failed_transfers: float
    """Hand-shakes and notifications included."""
    expired: float
    """KV caches that nobody took before their lease ended."""
    late: float
    """Notices that a KV cache was read, after it may have been overwritten."""

    @property
    def movement(self) -> tuple[float, ...]:
        """Changes with every few steps of an engine that works, and only the engine itself changes it."""
        return self.prompt_tokens, self.generated, self.running, self.waiting, self.preempted, self.usage

    @property
    def pending(self) -> float:
        """Requests that the engine knows of."""
        return self.running + self.waiting

    @classmethod
    def of(cls, text: str) -> Self | None:
        """From the text of ``/metrics``; ``None`` when that is not vLLM's, or statistics are off."""
        wanted = "\n".join(line for line in text.splitlines() if line.startswith(_NAMES))
        try:
            samples = [s for family in text_string_to_metric_families(wanted + "\n") for s in family.samples]
        except ValueError:
            return None
        sums: defaultdict[str, float] = defaultdict(float)
        labels: dict[str, str] = {}
        received: float | None = None
        for sample in samples:
            name = sample.name
            if name == "vllm:prompt_tokens_by_source_total":
                if sample.labels.get("source") == _RECEIVED:
                    received = (received or 0.0) + sample.value
                elif sample.labels.get("source") == _COMPUTED:
                    sums[_COMPUTED] += sample.value
            elif name == "vllm:cache_config_info":
                labels = sample.labels
            else:
                sums[name] += sample.value
        if "vllm:generation_tokens_total" not in sums:
            return None
        block = labels.get("block_size", "")
        return cls(
            started=sums.get("process_start_time_seconds"),
            block_size=int(block) if block.isdecimal() else None,
            kv_dtype=labels.get("cache_dtype", ""),
            prompt_tokens=sums["vllm:prompt_tokens_total"],
            received=received,
            computed=sums[_COMPUTED],
            generated=sums["vllm:generation_tokens_total"],
            running=sums["vllm:num_requests_running"],
            waiting=sums["vllm:num_requests_waiting"],
            preempted=sums["vllm:num_preemptions_total"],
            usage=sums["vllm:kv_cache_usage_perc"],
            moved_bytes=sums["vllm:nixl_bytes_transferred_sum"],
            moved_seconds=sums["vllm:nixl_xfer_time_seconds_sum"],
            failed_transfers=sums["vllm:nixl_num_failed_transfers_total"],
            expired=sums["vllm:nixl_num_kv_expired_reqs_total"],
            late=sums["vllm:nixl_num_notifications_after_expiry_total"],
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
