"""Each engine by itself."""

from tests.dashboards.parts import (
    CHOSEN,
    Bad,
    Choice,
    Good,
    Page,
    Panel,
    Query,
    Row,
    Table,
    engine_now,
    engine_rate,
    quantile,
    rate,
    share,
)

_ONE = 'engine=~"$engine",'
_NAME = "{{engine}}"


def _now(gauge: str, of: str = "max") -> tuple[Query]:
    return (Query(f"{of} by (engine) ({gauge}{{{_ONE}{CHOSEN}}})", _NAME),)


def _p95(histogram: str) -> tuple[Query]:
    return (Query(quantile(0.95, histogram, "engine", _ONE), _NAME),)


def _rate(counter: str) -> str:
    return engine_rate(counter, more=_ONE)


PAGE = Page(
    "engines",
    "Duet: engines",
    "Each engine by itself, as the proxy sees it and by its own metrics.",
    (
        Row(
            "Do they serve",
            (
                Good("Answers probes", "short", "Good: yes.", _now("duet_instance_healthy", "min"), ("engine-down",)),
                Bad(
                    "Frozen",
                    "short",
                    "It has work, and none of its counters moves. Good: no.",
                    _now("duet_engine_frozen"),
                    ("engine-frozen",),
                ),
                Bad("Drained", "short", "It gets no new requests, by an order.", _now("duet_instance_draining")),
                Bad(
                    "Kept away by failures",
                    "short",
                    "The breaker of each engine. Good: no.",
                    _now("duet_breaker_open"),
                    ("breaker-open",),
                ),
                Panel(
                    "Failures",
                    "cpm",
                    "Of requests to an engine, by kind. Good: 0.",
                    (
                        Query(
                            f"60 * {rate('duet_upstream_failures_total', 'engine, kind', _ONE)}", "{{engine}}: {{kind}}"
                        ),
                    ),
                    ("breaker-open", "requests-failing"),
                ),
                Good("Tells its metrics", "short", "Good: yes.", _now("duet_engine_up"), ("engine-metrics-missing",)),
            ),
        ),
        Row(
            "Load",
            (
                Panel(
                    "Computes",
                    "short",
                    "Requests at a time. Good: alike among engines of one role.",
                    _now("duet_engine_requests_running"),
                ),
                Panel(
                    "Waiting",
                    "short",
                    "Requests without a place, or whose KV has not come. Good: few, and not for long.",
                    _now("duet_engine_requests_waiting"),
                    ("kv-cache-full", "ttft-high"),
                ),
                Panel(
                    "KV cache in use",
                    "percentunit",
                    "Good: below the line.",
                    _now("duet_engine_kv_cache_usage_ratio"),
                    ("kv-cache-full",),
                    ("kv_cache_usage",),
                ),
                Panel(
                    "Preemptions by finished request",
                    "short",
                    "Requests thrown out to be computed again. Good: 0, at least below the line.",
                    (
                        Query(
                            share(_rate("duet_engine_preemptions_total"), _rate("duet_engine_requests_finished_total")),
                            _NAME,
                        ),
                    ),
                    ("preemption-storm",),
                    ("preempted_share",),
                ),
                Panel(
                    "Prompt tokens",
                    "short",
                    "By second.",
                    (Query(_rate("duet_engine_prompt_tokens_total"), _NAME),),
                ),
                Panel(
                    "Output tokens",
                    "short",
                    "By second; a prefill engine makes one for each prompt.",
                    (Query(_rate("duet_engine_generation_tokens_total"), _NAME),),
                ),
                Panel(
                    "Requests that ended",
                    "reqps",
                    "By reason. Good: `stop` and `length`; at prefill `length` only.",
                    (
                        Query(
                            engine_rate("duet_engine_requests_finished_total", "engine, reason", _ONE),
                            "{{engine}}: {{reason}}",
                        ),
                    ),
                ),
                Panel(
                    "Found in the prefix cache",
                    "percentunit",
                    "Of the prompt tokens looked up. Good: what your traffic repeats.",
                    (
                        Query(
                            share(
                                _rate("duet_engine_prefix_cache_hits_total"),
                                _rate("duet_engine_prefix_cache_queries_total"),
                            ),
                            _NAME,
                        ),
                    ),
                ),
                Panel(
                    "Queue of prefill, estimated",
                    "s",
                    "Shown under the policy `ttft` only. Good: below the objective.",
                    _now("duet_prefill_queue_seconds", "sum"),
                    ("ttft-high",),
                ),
            ),
        ),
        Row(
            "Times, p95, as engines see them",
            (
                Panel("Waiting for its turn", "s", "Good: near 0.", _p95("duet_engine_queue_seconds"), ("ttft-high",)),
                Panel("Prefill", "s", "At decode the wait for KV is in it.", _p95("duet_engine_prefill_seconds")),
                Panel("Decode", "s", "From the first token to the last.", _p95("duet_engine_decode_seconds")),
                Panel(
                    "Time to first token",
                    "s",
                    "Of decode without prefill: clients wait for what the overview shows.",
                    _p95("duet_engine_ttft_seconds"),
                ),
                Panel("Time by output token", "s", "After the first.", _p95("duet_engine_tpot_seconds")),
                Panel(
                    "Whole requests",
                    "s",
                    "From arrival to the last token.",
                    _p95("duet_engine_request_duration_seconds"),
                ),
                Panel("Prompts", "short", "Tokens of one request.", _p95("duet_engine_request_prompt_tokens")),
                Panel("Answers", "short", "Tokens of one request.", _p95("duet_engine_request_output_tokens")),
            ),
        ),
        Row(
            "Processes",
            (
                Panel(
                    "Uptime",
                    "s",
                    "Falls to 0 when an engine is started anew.",
                    (Query(f"time() - {engine_now('duet_engine_start_time_seconds', more=_ONE)}", _NAME),),
                    ("engine-down",),
                ),
                Panel(
                    "Resident memory of the HTTP server",
                    "bytes",
                    "Good: even.",
                    _now("duet_engine_resident_memory_bytes"),
                ),
                Panel(
                    "Age of what the proxy knows",
                    "s",
                    "Good: below 5 s, as the proxy looks every `proxy.probe_interval`.",
                    _now("duet_engine_metrics_age_seconds"),
                    ("engine-metrics-missing",),
                ),
                Table(
                    "Versions",
                    "short",
                    "Good: one version and one model.",
                    (Query(f"max by (engine, role, version, model) (duet_engine_info{{{_ONE}{CHOSEN}}})", ""),),
                ),
            ),
        ),
        Row(
            "GPUs (needs NVIDIA's dcgm-exporter as a target)",
            (
                Panel(
                    "Busy",
                    "percent",
                    "Time in which any kernel runs. Good: high at prefill under load.",
                    (Query("avg by (Hostname, gpu) (DCGM_FI_DEV_GPU_UTIL)", "{{Hostname}} {{gpu}}"),),
                ),
                Panel(
                    "Memory in use",
                    "decmbytes",
                    "Good: even; engines take all of their share at the start.",
                    (Query("avg by (Hostname, gpu) (DCGM_FI_DEV_FB_USED)", "{{Hostname}} {{gpu}}"),),
                ),
            ),
            is_open=False,
        ),
    ),
    (Choice("engine", "Engine", f"label_values(duet_instance_healthy{{{CHOSEN}}}, engine)"),),
)
