"""How the deployment is, seen from clients."""

from tests.dashboards.parts import (
    CHOSEN,
    Number,
    Page,
    Panel,
    Query,
    Row,
    Table,
    engine_now,
    engine_rate,
    percentiles,
    quantile,
    rate,
    share,
)

_ALL = rate("duet_requests_total", "job")
_BAD = rate("duet_requests_total", "job", 'outcome=~"failed|broken_off",')

PAGE = Page(
    "overview",
    "Duet: overview",
    "What clients get: how many requests, how fast, how many fail, and which way they went.",
    (
        Row(
            "Now",
            (
                Number(
                    "Alerts",
                    "short",
                    "Alerts that fire. Good: 0.",
                    (
                        Query(
                            f'count(ALERTS{{alertstate="firing",alertname=~"Duet.*",{CHOSEN}}}) or vector(0)', "firing"
                        ),
                    ),
                ),
                Number("Requests", "reqps", "Requests that ended, by second.", (Query(f"sum({_ALL})", "requests"),)),
                Number(
                    "Failed",
                    "percentunit",
                    "Requests that got no answer or half of one, in the last 5 minutes. Good: 0.",
                    (Query(f"max(duet:requests_failed:ratio5m{{{CHOSEN}}})", "failed"),),
                    ("requests-failing",),
                ),
                Number(
                    "TTFT p95",
                    "s",
                    "Nineteen of twenty streamed answers begin sooner. Good: below the objective.",
                    (Query(quantile(0.95, "duet_ttft_seconds"), "p95"),),
                    ("ttft-high",),
                ),
                Number(
                    "Output",
                    "short",
                    "Tokens that the engines generate, by second; canaries' too.",
                    (Query(f"sum({engine_rate('duet_engine_generation_tokens_total')})", "tokens/s"),),
                ),
                Number(
                    "Engines out",
                    "short",
                    "Engines that answer no probes or are frozen. Good: 0.",
                    (
                        Query(
                            f"sum(1 - min by (job, namespace, engine) (duet_instance_healthy{{{CHOSEN}}}))", "engines"
                        ),
                    ),
                    ("engine-down", "engine-frozen"),
                ),
            ),
        ),
        Row(
            "Requests",
            (
                Panel(
                    "Requests by outcome",
                    "reqps",
                    "Good: nearly all `ok`. `refused`: no room, or the proxy ends; `left`: the client did not wait.",
                    (Query(rate("duet_requests_total", "outcome"), "{{outcome}}"),),
                    ("requests-failing",),
                ),
                Panel(
                    "Failed requests",
                    "percentunit",
                    "Of all requests. Good: below the line.",
                    (Query(share(f"({_BAD} or 0 * {_ALL})", _ALL), "{{job}}"),),
                    ("requests-failing",),
                    ("failed_share",),
                ),
                Panel(
                    "Requests by the way they went",
                    "reqps",
                    "`pd`: prefill's KV was handed over. Good: `pd`, but for what `proxy.pd` wants otherwise.",
                    (Query(rate("duet_requests_total", "path"), "{{path}}"),),
                    ("fallback-share-high",),
                ),
                Panel(
                    "Time to first token",
                    "s",
                    "Of streamed answers, as clients wait. Good: p95 below the line.",
                    percentiles("duet_ttft_seconds"),
                    ("ttft-high",),
                    ("ttft",),
                ),
                Panel(
                    "Time by output token",
                    "s",
                    "After the first; of streams that tell their tokens. Good: even, and not growing with the load.",
                    percentiles("duet_time_per_output_token_seconds", more='counted="tokens",'),
                ),
                Panel(
                    "Longest pause in a stream",
                    "s",
                    "The worst stall of each stream. Good: a few times the time by token.",
                    percentiles("duet_longest_pause_seconds"),
                ),
                Panel(
                    "Duration of requests",
                    "s",
                    "From the request to the end of its answer.",
                    percentiles("duet_request_duration_seconds"),
                ),
                Panel(
                    "Why requests were served aggregated",
                    "reqps",
                    "Good: reasons that were asked for. `no_...`, `..._failed`, `prefill_without_kv`: PD is broken.",
                    (Query(rate("duet_pd_bypassed_total", "reason"), "{{reason}}"),),
                    ("fallback-share-high",),
                ),
                Panel(
                    "Refused, retried, left",
                    "reqps",
                    "Requests without room; tries after the first; clients that did not wait. Good: none.",
                    (
                        Query(rate("duet_refused_total", "reason"), "refused: {{reason}}"),
                        Query(rate("duet_retries_total", "step"), "retried: {{step}}"),
                        Query(rate("duet_client_disconnects_total", "phase"), "left: {{phase}}"),
                    ),
                ),
            ),
        ),
        Row(
            "Load",
            (
                Panel(
                    "In flight",
                    "short",
                    "Requests that each engine has from the proxy. Good: alike among engines of one role.",
                    (Query(f"sum by (engine) (duet_in_flight{{{CHOSEN}}})", "{{engine}}"),),
                ),
                Panel(
                    "At the door",
                    "short",
                    "Requests that have a place, and that wait for one. Good: nobody waits.",
                    (
                        Query(f"sum(duet_admitted{{{CHOSEN}}})", "have a place"),
                        Query(f"sum(duet_waiting{{{CHOSEN}}})", "wait"),
                    ),
                ),
                Panel(
                    "KV cache in use",
                    "percentunit",
                    "Of each engine. Good: below the line; at 1 requests wait or are thrown out.",
                    (Query(engine_now("duet_engine_kv_cache_usage_ratio"), "{{engine}}"),),
                    ("kv-cache-full",),
                    ("kv_cache_usage",),
                ),
            ),
        ),
        Row(
            "Alerts",
            (
                Table(
                    "Alerts that fire",
                    "short",
                    "Good: none. What to do is in docs/runbook.md.",
                    (Query(f'ALERTS{{alertstate="firing",alertname=~"Duet.*",{CHOSEN}}}', ""),),
                ),
            ),
        ),
    ),
)
