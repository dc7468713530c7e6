"""Contract shape: the metrics of engines under names of ours, whatever the version of vLLM calls them.

Made for vLLM 0.32 (``v1/metrics/loggers.py`` and the connectors' own ``stats.py``). A recorded scrape of a real pair is
compared with this table, so that a new version that renames one of them is noticed by a test and not by a silent panel.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.instrument import Instrument, Kind, counter, gauge, seconds

_TOLD = ("engine", "role", "rank", "model")
_OURS = ("engine", "role")
RENAMED_LABELS: Mapping[str, str] = {"engine": "rank", "model_name": "model", "finished_reason": "reason"}
"""vLLM's ``engine`` is the number of a data-parallel rank; ours is an instance's name."""
LABELS: Mapping[str, str] = {
    "rank": "of the data-parallel engines of one instance, from 0",
    "model": "the first name that the engine serves its model by",
    "source": "where KV of a prompt came from: `local_compute`, `local_cache_hit` or `external_kv_transfer`",
    "reason": "of waiting: `capacity`, or `deferred`, mostly for KV that is on its way; of what ended: `stop`, "
    "`length`, `abort`, `error` or `repetition`",
    "position": "of a token in its draft, from 0",
    "version": "as the engine says it",
}

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
WAITING_BY_REASON = "vllm:num_requests_waiting_by_reason"
USAGE = "vllm:kv_cache_usage_perc"
PREEMPTIONS = "vllm:num_preemptions_total"
PROMPT_TOKENS = "vllm:prompt_tokens_total"
PROMPT_TOKENS_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
GENERATED = "vllm:generation_tokens_total"
PREFIX_QUERIES = "vllm:prefix_cache_queries_total"
PREFIX_HITS = "vllm:prefix_cache_hits_total"
ENDED = "vllm:request_success_total"
DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFT_TOKENS = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
ACCEPTED_BY_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
FAILED_TRANSFERS = "vllm:nixl_num_failed_transfers_total"
EXPIRED = "vllm:nixl_num_kv_expired_reqs_total"
READ_LATE = "vllm:nixl_num_notifications_after_expiry_total"
CACHE_CONFIG = "vllm:cache_config_info"
CACHE_TOKENS = "kv_cache_size_tokens"
"""A label of it."""
PROCESS_START = "process_start_time_seconds"
RESIDENT = "process_resident_memory_bytes"

# Histograms, without _bucket, _sum and _count.
TTFT = "vllm:time_to_first_token_seconds"
ITL = "vllm:inter_token_latency_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
E2E = "vllm:e2e_request_latency_seconds"
QUEUE = "vllm:request_queue_time_seconds"
PREFILL_TIME = "vllm:request_prefill_time_seconds"
DECODE_TIME = "vllm:request_decode_time_seconds"
TRANSFER_TIME = "vllm:nixl_xfer_time_seconds"
TRANSFERRED = "vllm:nixl_bytes_transferred"
REQUEST_PROMPT = "vllm:request_prompt_tokens"
REQUEST_OUTPUT = "vllm:request_generation_tokens"

_PARTS = ("_bucket", "_sum", "_count")
OLDER: Mapping[str, str] = {
    "vllm:gpu_cache_usage_perc": USAGE,
    "vllm:gpu_prefix_cache_queries_total": PREFIX_QUERIES,
    "vllm:gpu_prefix_cache_hits_total": PREFIX_HITS,
    **{f"vllm:time_per_output_token_seconds{part}": f"{ITL}{part}" for part in _PARTS},
}
"""What older engines call samples that have another name now. Versions in between show some under both names."""


@dataclass(frozen=True, slots=True)
class Told:
    """A metric of vLLM and its name here."""

    source: str
    """In vLLM 0.32: of a sample, or of a histogram without ``_bucket``, ``_sum`` and ``_count``."""
    shown: Instrument

    @property
    def samples(self) -> Mapping[str, str]:
        """Names of samples there, and here."""
        if self.shown.kind is Kind.HISTOGRAM:
            return {f"{self.source}{part}": f"{self.shown.name}{part}" for part in _PARTS}
        return {self.source: self.shown.shown}


def _gauge(source: str, name: str, meaning: str, unit: str, *labels: str) -> Told:
    return Told(source, gauge(f"duet_engine_{name}", (*_TOLD, *labels), meaning, unit))


def _counter(source: str, name: str, meaning: str, unit: str, *labels: str) -> Told:
    return Told(source, counter(f"duet_engine_{name}", (*_TOLD, *labels), meaning, unit))


def _seconds(source: str, name: str, meaning: str) -> Told:
    return Told(source, seconds(f"duet_engine_{name}_seconds", _TOLD, (), meaning))


def _sizes(source: str, name: str, meaning: str, unit: str) -> Told:
    return Told(source, Instrument(f"duet_engine_{name}", Kind.HISTOGRAM, unit, _TOLD, meaning))


TOLD: tuple[Told, ...] = (
    _gauge(RUNNING, "requests_running", "Requests that the engine computes.", "requests"),
    _gauge(WAITING, "requests_waiting", "Requests that have no place yet, or whose KV has not come.", "requests"),
    _gauge(WAITING_BY_REASON, "requests_waiting_by_reason", "The same, by reason.", "requests", "reason"),
    _gauge(USAGE, "kv_cache_usage_ratio", "Of the KV cache's blocks, those in use.", "0 to 1"),
    _counter(PREEMPTIONS, "preemptions", "Requests thrown out for lack of KV cache, to be computed again.", "times"),
    _counter(PROMPT_TOKENS, "prompt_tokens", "Of requests that have got their first token.", "tokens"),
    _counter(
        PROMPT_TOKENS_BY_SOURCE,
        "prompt_tokens_by_source",
        "The same, by where their KV came from: at decode `external_kv_transfer` is the proof of PD.",
        "tokens",
        "source",
    ),
    _counter(GENERATED, "generation_tokens", "Tokens generated.", "tokens"),
    _counter(PREFIX_QUERIES, "prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", "tokens"),
    _counter(PREFIX_HITS, "prefix_cache_hits", "Those found there.", "tokens"),
    _counter(ENDED, "requests_finished", "Requests that ended, failed ones too.", "requests", "reason"),
    _counter(DRAFTS, "drafts", "Drafts that speculation proposed.", "drafts"),
    _counter(DRAFT_TOKENS, "draft_tokens", "Tokens of these drafts.", "tokens"),
    _counter(ACCEPTED, "accepted_tokens", "Those that the model accepted.", "tokens"),
    _counter(
        ACCEPTED_BY_POSITION, "accepted_tokens_by_position", "The same, by place in the draft.", "tokens", "position"
    ),
    _counter(FAILED_TRANSFERS, "kv_failed_transfers", "KV transfers, handshakes and notices that failed.", "transfers"),
    _counter(EXPIRED, "kv_expired", "At prefill: KV caches that nobody took before their lease ended.", "KV caches"),
    _counter(
        READ_LATE,
        "kv_read_late",
        "At prefill: notices that KV was read after its lease, when it may have been overwritten; where also KV "
        "expired, answers may be wrong.",
        "KV caches",
    ),
    _seconds(TTFT, "ttft", "As the engine sees it, decode without prefill; clients wait for `duet_ttft_seconds`."),
    _seconds(ITL, "itl", "Between two events of a stream; under speculation one has several tokens."),
    _seconds(TPOT, "tpot", "By token, of each request."),
    _seconds(E2E, "request_duration", "From arrival to the last token."),
    _seconds(QUEUE, "queue", "Until the engine began with a request."),
    _seconds(PREFILL_TIME, "prefill", "Computing the prompt; at decode also waiting for its KV."),
    _seconds(DECODE_TIME, "decode", "From the first token to the last."),
    _seconds(TRANSFER_TIME, "kv_transfer", "One KV transfer, by the side that starts it (NIXL)."),
    _sizes(TRANSFERRED, "kv_transfer_bytes", "Of one KV transfer (NIXL).", "bytes"),
    _sizes(REQUEST_PROMPT, "request_prompt_tokens", "Of one request.", "tokens"),
    _sizes(REQUEST_OUTPUT, "request_output_tokens", "Of one request.", "tokens"),
    Told(PROCESS_START, gauge("duet_engine_start_time_seconds", _OURS, "Since when it runs.", "seconds since 1970")),
    Told(RESIDENT, gauge("duet_engine_resident_memory_bytes", _OURS, "Of its HTTP server's process, in RAM.", "bytes")),
)
"""What is read from an engine."""

CACHE = gauge("duet_engine_kv_cache_tokens", _OURS, "That its KV cache has room for.", "tokens")
UP = gauge("duet_engine_up", _OURS, "1 while the engine tells its metrics; else nothing else is shown of it.")
AGE = gauge("duet_engine_metrics_age_seconds", _OURS, "Since it told them last.", "seconds")
INFO = gauge("duet_engine_info", (*_OURS, "version", "model"), "Always 1; the labels tell.", "1")
ACCEPTANCE = gauge(
    "duet_engine_acceptance_rate", _OURS, "Of the last minute's draft tokens, those accepted; absent without.", "0 to 1"
)
ACCEPTED_LENGTH = gauge(
    "duet_engine_mean_acceptance_length",
    _OURS,
    "Tokens by step that had a draft, in the last minute: accepted ones and the model's own.",
    "tokens",
)
MADE = (UP, AGE, INFO, CACHE, ACCEPTANCE, ACCEPTED_LENGTH)
"""What the proxy adds."""
