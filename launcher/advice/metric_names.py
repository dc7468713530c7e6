"""Which metrics the advice reads: of vLLM, by the proxy's table, and of the proxy itself."""

from proxy import engine_instruments as vllm

PROXY_TTFT = "duet_ttft_seconds"

PROXY_REQUESTS = "duet_requests_total"
CANARIES = "duet_canaries_total"
IN_FLIGHT = "duet_in_flight"
"""By ``engine``; canaries, too."""

GAUGES = frozenset({vllm.RUNNING, vllm.WAITING, vllm.WAITING_BY_REASON, vllm.USAGE, IN_FLIGHT})
_HISTOGRAMS = (
    *(
        vllm.REQUEST_PROMPT,
        vllm.REQUEST_OUTPUT,
        vllm.ITL,
        vllm.TPOT,
        vllm.QUEUE,
        vllm.PREFILL_TIME,
        vllm.TTFT,
        vllm.TRANSFER_TIME,
        vllm.TRANSFERRED,
    ),
    PROXY_TTFT,
)
COUNTERS = frozenset(
    {
        *(
            vllm.PREEMPTIONS,
            vllm.PREFIX_QUERIES,
            vllm.PREFIX_HITS,
            vllm.PROMPT_TOKENS_BY_SOURCE,
            vllm.GENERATED,
            vllm.ENDED,
            vllm.DRAFTS,
            vllm.DRAFT_TOKENS,
            vllm.ACCEPTED_BY_POSITION,
        ),
        *(vllm.ACCEPTED, vllm.ACCEPTED_BY_POSITION, PROXY_REQUESTS, CANARIES),
        *(f"{name}{suffix}" for name in _HISTOGRAMS for suffix in ("_bucket", "_sum", "_count")),
    }
)
"""What only grows, until the process that counts ends."""
