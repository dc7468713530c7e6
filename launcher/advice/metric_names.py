"""The one place with names of metrics: of vLLM, also older than 0.32, and of the proxy, as in ``/metrics``."""

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
WAITING_BY_REASON = "vllm:num_requests_waiting_by_reason"
"""By ``reason``. Those that are ``deferred`` mostly wait for KV from elsewhere; that is no queue."""
KV_CACHE_USAGE = "vllm:kv_cache_usage_perc"
PREEMPTIONS = "vllm:num_preemptions_total"
PREFIX_QUERIES = "vllm:prefix_cache_queries_total"
PREFIX_HITS = "vllm:prefix_cache_hits_total"
PROMPT_TOKENS_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
GENERATED = "vllm:generation_tokens_total"
ENDED = "vllm:request_success_total"
DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFT_TOKENS = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
PROCESS_START = "process_start_time_seconds"

# Histograms, without _bucket, _sum and _count.
PROMPT_TOKENS = "vllm:request_prompt_tokens"
OUTPUT_TOKENS = "vllm:request_generation_tokens"
ITL = "vllm:inter_token_latency_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
QUEUE_TIME = "vllm:request_queue_time_seconds"
PREFILL_TIME = "vllm:request_prefill_time_seconds"
ENGINE_TTFT = "vllm:time_to_first_token_seconds"
TRANSFER_TIME = "vllm:nixl_xfer_time_seconds"
TRANSFERRED = "vllm:nixl_bytes_transferred"
PROXY_TTFT = "duet_ttft_seconds"

PROXY_REQUESTS = "duet_requests_total"
CANARIES = "duet_canaries_total"
IN_FLIGHT = "duet_in_flight"
"""By ``instance``; canaries, too."""

GAUGES = frozenset({RUNNING, WAITING, WAITING_BY_REASON, KV_CACHE_USAGE, IN_FLIGHT})
_HISTOGRAMS = (
    *(PROMPT_TOKENS, OUTPUT_TOKENS, ITL, TPOT, QUEUE_TIME, PREFILL_TIME, ENGINE_TTFT, TRANSFER_TIME, TRANSFERRED),
    PROXY_TTFT,
)
COUNTERS = frozenset(
    {
        *(PREEMPTIONS, PREFIX_QUERIES, PREFIX_HITS, PROMPT_TOKENS_BY_SOURCE, GENERATED, ENDED, DRAFTS, DRAFT_TOKENS),
        *(ACCEPTED, PROXY_REQUESTS, CANARIES),
        *(f"{name}{suffix}" for name in _HISTOGRAMS for suffix in ("_bucket", "_sum", "_count")),
    }
)
"""What only grows, until the process that counts ends."""
OLDER = {
    "vllm:gpu_cache_usage_perc": KV_CACHE_USAGE,
    "vllm:gpu_prefix_cache_queries_total": PREFIX_QUERIES,
    "vllm:gpu_prefix_cache_hits_total": PREFIX_HITS,
    **{f"vllm:time_per_output_token_seconds{part}": f"{ITL}{part}" for part in ("_bucket", "_sum", "_count")},
}
"""What older engines call what has another name now. Versions in between show some under both names."""
