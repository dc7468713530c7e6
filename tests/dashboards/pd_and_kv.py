"""Whether KV moves from prefill to decode, how fast, and whether it is the right one."""

from tests.dashboards.parts import (
    CHOSEN,
    Bad,
    Good,
    Page,
    Panel,
    Query,
    Row,
    engine_now,
    engine_rate,
    percentiles,
    quantile,
    rate,
    share,
)

_PAIR = "prefill, decode"
_ARROW = "{{prefill}} → {{decode}}"
_HANDED = rate("duet_handovers_total", _PAIR)
_FAILED = rate("duet_handovers_total", _PAIR, 'outcome="failed",')
_PD = rate("duet_requests_total", "job", 'path="pd",')
_FALLEN = rate(
    "duet_pd_bypassed_total",
    "job",
    'reason=~"no_(prefill|decode|pair)|prefill_failed|prefill_without_kv|decode_failed",',
)
_REQUESTS = rate("duet_requests_total", "job")


def _of_pairs(gauge: str, of: str = "max") -> tuple[Query]:
    return (Query(f"{of} by ({_PAIR}) ({gauge}{{{CHOSEN}}})", _ARROW),)


PAGE = Page(
    "pd-and-kv",
    "Duet: PD and KV",
    "Whether KV moves from prefill to decode, how fast, and whether it is the right one.",
    (
        Row(
            "Does KV move",
            (
                Panel(
                    "Requests through a pair",
                    "percentunit",
                    "Of all requests, those whose KV came from prefill. Good: all but what `proxy.pd` wants otherwise.",
                    (Query(share(f"({_PD} or 0 * {_REQUESTS})", _REQUESTS), "{{job}}"),),
                    ("fallback-share-high",),
                ),
                Panel(
                    "Served aggregated as PD is broken",
                    "percentunit",
                    "Of all requests. Good: 0, at least below the line.",
                    (Query(share(f"({_FALLEN} or 0 * {_REQUESTS})", _REQUESTS), "{{job}}"),),
                    ("fallback-share-high",),
                    ("fallback_share",),
                ),
                Panel(
                    "Prompt tokens from prefill",
                    "percentunit",
                    "Of decode's prompt tokens of the last minute, those with KV from prefill, by its own counter. "
                    "Good: near 1; less where decode has prompts cached. 0 means that PD is silently off.",
                    (Query(f"max by (decode) (duet_kv_received_share{{{CHOSEN}}})", "{{decode}}"),),
                    ("pd-silently-off",),
                ),
                Panel(
                    "Where decode has its prompt tokens from",
                    "short",
                    "Tokens by second. Good: `external_kv_transfer`; `local_cache_hit` for prompts that come again.",
                    (
                        Query(
                            engine_rate("duet_engine_prompt_tokens_by_source_total", "source", 'role="decode",'),
                            "{{source}}",
                        ),
                    ),
                    ("pd-silently-off",),
                ),
                Panel(
                    "Failed hand-overs",
                    "percentunit",
                    "Of all hand-overs of a pair. Good: 0, at least below the line.",
                    (Query(share(f"({_FAILED} or 0 * {_HANDED})", _HANDED), _ARROW),),
                    ("handovers-failing",),
                    ("handover_failures",),
                ),
                Bad(
                    "PD silently off",
                    "short",
                    "By the canary: decode answers hand-overs, but computes the prompts itself. Good: no.",
                    (Query(f"max by (decode) (duet_pd_silently_off{{{CHOSEN}}})", "{{decode}}"),),
                    ("pd-silently-off",),
                ),
            ),
        ),
        Row(
            "Pairs",
            (
                Good(
                    "In use",
                    "short",
                    "Whether requests may go this way. Good: yes.",
                    _of_pairs("duet_pair_usable", "min"),
                    ("pair-out-of-use",),
                ),
                Bad(
                    "Kept away by failed hand-overs",
                    "short",
                    "The breaker of each pair. Good: no.",
                    _of_pairs("duet_pair_breaker_open"),
                    ("breaker-open",),
                ),
                Panel(
                    "Canaries",
                    "cpm",
                    "Requests of the proxy's own that prove each pair, by what they have shown. Good: `proven` only.",
                    (Query(f"60 * {rate('duet_canaries_total', 'verdict')}", "{{verdict}}"),),
                    ("canary-failing",),
                ),
                Good(
                    "Proven by the last canary",
                    "short",
                    "Good: yes.",
                    (Query(f'max by ({_PAIR}) (duet_pair_verdict{{verdict="proven",{CHOSEN}}})', _ARROW),),
                    ("canary-failing",),
                ),
                Panel(
                    "Age of the last decisive canary",
                    "s",
                    "Good: below `proxy.canary.interval`, and the line.",
                    _of_pairs("duet_pair_proof_age_seconds"),
                    ("canary-overdue",),
                    ("canary_age",),
                ),
                Panel(
                    "Speed of the canary's KV",
                    "Bps",
                    "Where the engines count it; large prompts are faster. Good: even.",
                    _of_pairs("duet_pair_kv_bytes_per_second"),
                    ("kv-transfer-slow",),
                ),
            ),
        ),
        Row(
            "How fast",
            (
                Panel(
                    "One KV transfer, p95",
                    "s",
                    "By the engine that starts it (NIXL tells, others do not). Good: below the line.",
                    (Query(quantile(0.95, "duet_engine_kv_transfer_seconds", "engine"), "{{engine}}"),),
                    ("kv-transfer-slow",),
                    ("kv_transfer",),
                ),
                Panel(
                    "KV moved",
                    "Bps",
                    "Bytes by second of all transfers together.",
                    (Query(engine_rate("duet_engine_kv_transfer_bytes_sum"), "{{engine}}"),),
                    ("kv-transfer-slow",),
                ),
                Panel(
                    "Size of one KV transfer, median",
                    "bytes",
                    "Follows the prompts: when it falls and the prompts do not, decode has more of them cached.",
                    (Query(quantile(0.5, "duet_engine_kv_transfer_bytes", "engine"), "{{engine}}"),),
                ),
                Panel(
                    "Prefill: until its KV is ready",
                    "s",
                    "The first leg: waiting at prefill, and the prompt. Good: follows the prompts' lengths only.",
                    percentiles("duet_handoff_seconds"),
                    ("ttft-high",),
                ),
                Panel(
                    "Decode: from the hand-over to the first event",
                    "s",
                    "The second leg: waiting at decode, the transfer and one step. Good: even.",
                    percentiles("duet_handover_seconds"),
                    ("ttft-high", "kv-transfer-slow"),
                ),
                Panel(
                    "Waiting for KV at decode",
                    "short",
                    "Requests whose KV is on its way (`deferred`), or that have no room (`capacity`). Good: few.",
                    (
                        Query(
                            engine_now("duet_engine_requests_waiting_by_reason", "engine, reason", 'role="decode",'),
                            "{{engine}}: {{reason}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "KV that nobody took",
            (
                Panel(
                    "Expired",
                    "short",
                    "KV caches whose lease ended before decode took them, within 15 minutes. Good: 0.",
                    (Query(f"max by (engine) (duet:kv_expired:increase15m{{{CHOSEN}}})", "{{engine}}"),),
                    ("kv-expired",),
                ),
                Panel(
                    "Read after the lease",
                    "short",
                    "Within 15 minutes. Where KV has expired, too, answers may be wrong. Good: 0.",
                    (Query(f"max by (engine) (duet:kv_read_late:increase15m{{{CHOSEN}}})", "{{engine}}"),),
                    ("kv-read-late",),
                ),
                Panel(
                    "Failed transfers",
                    "cpm",
                    "Transfers, hand-shakes and notices, by the engines' own counters. Good: 0.",
                    (Query(f"60 * {engine_rate('duet_engine_kv_failed_transfers_total')}", "{{engine}}"),),
                    ("handovers-failing",),
                ),
                Panel(
                    "Stranded and released",
                    "cpm",
                    "KV that no decode engine took: stranded fills prefill until its lease ends. Good: 0 stranded.",
                    (
                        Query(f"60 * {rate('duet_kv_stranded_total', 'job')}", "stranded"),
                        Query(f"60 * {rate('duet_kv_released_total', 'job')}", "released"),
                    ),
                    ("kv-expired",),
                ),
                Panel(
                    "KV cache of prefill in use",
                    "percentunit",
                    "Good: falls to 0 when there is no traffic; else KV waits for somebody.",
                    (Query(engine_now("duet_engine_kv_cache_usage_ratio", more='role="prefill",'), "{{engine}}"),),
                    ("kv-expired",),
                    ("kv_cache_usage",),
                ),
            ),
        ),
    ),
)
