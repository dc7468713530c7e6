"""Two deployments side by side, one of them quantized."""

from collections.abc import Callable

from tests.dashboards.parts import Choice, Page, Panel, Query, Row, engine_rate, quantile, share

_A = 'job=~"$job",namespace=~"$namespace"'
_B = 'job=~"$other",namespace=~"$namespace"'


def _both(expr: Callable[[str], str]) -> tuple[Query, Query]:
    return Query(expr(_A), "A"), Query(expr(_B), "B")


def _mean(of: str, chosen: str) -> str:
    more = 'role!="prefill",'
    total = engine_rate(f"{of}_sum", more=more, chosen=chosen)
    return share(f"sum({total})", f"sum({engine_rate(f'{of}_count', more=more, chosen=chosen)})")


def _failed(chosen: str) -> str:
    whole = f"sum(rate(duet_requests_total{{{chosen}}}[$__rate_interval]))"
    failed = f'sum(rate(duet_requests_total{{outcome=~"failed|broken_off",{chosen}}}[$__rate_interval]))'
    return share(f"({failed} or 0 * {whole})", whole)


PAGE = Page(
    "quantization-ab",
    "Duet: quantization, A and B",
    "Two deployments side by side under the same traffic, one of them quantized: A is `Deployment`, B is `Other`.",
    (
        Row(
            "Are the answers still good",
            (
                Panel(
                    "Agreement with the reference",
                    "percentunit",
                    "Of the tokens of reference answers, those that an engine gives likewise. Good: above the line.",
                    _both(lambda chosen: f"min(duet_reference_agreement{{{chosen}}})"),
                    ("quantization-drift",),
                    ("reference_agreement",),
                ),
                Panel(
                    "Failed requests",
                    "percentunit",
                    "Good: alike, and 0.",
                    _both(_failed),
                    ("requests-failing",),
                ),
                Panel(
                    "Acceptance of drafts",
                    "percentunit",
                    "A draft made for the model before it was quantized is accepted less. Good: alike.",
                    _both(
                        lambda chosen: share(
                            f"sum({engine_rate('duet_engine_accepted_tokens_total', chosen=chosen)})",
                            f"sum({engine_rate('duet_engine_draft_tokens_total', chosen=chosen)})",
                        )
                    ),
                    ("acceptance-low", "quantization-drift"),
                ),
                Panel(
                    "Length of answers, mean",
                    "short",
                    "Tokens. A model that was hurt talks longer, or stops too soon. Good: alike.",
                    _both(lambda chosen: _mean("duet_engine_request_output_tokens", chosen)),
                    ("quantization-drift",),
                ),
            ),
        ),
        Row(
            "Is it faster",
            (
                Panel(
                    "Time to first token, p95",
                    "s",
                    "What clients wait for.",
                    _both(lambda chosen: quantile(0.95, "duet_ttft_seconds", chosen=chosen)),
                    ("ttft-high",),
                ),
                Panel(
                    "Time by output token, mean",
                    "s",
                    "After the first.",
                    _both(lambda chosen: _mean("duet_engine_tpot_seconds", chosen)),
                ),
                Panel(
                    "Output tokens",
                    "short",
                    "By second, of all engines of a deployment.",
                    _both(lambda chosen: f"sum({engine_rate('duet_engine_generation_tokens_total', chosen=chosen)})"),
                ),
            ),
        ),
        Row(
            "Is there more room",
            (
                Panel(
                    "Room in the KV caches",
                    "short",
                    "Tokens, of all engines of a deployment. Smaller weights leave more.",
                    _both(
                        lambda chosen: f"sum(max by (job, namespace, engine) (duet_engine_kv_cache_tokens{{{chosen}}}))"
                    ),
                ),
                Panel(
                    "KV cache in use, the fullest",
                    "percentunit",
                    "Good: below the line.",
                    _both(lambda chosen: f"max(duet_engine_kv_cache_usage_ratio{{{chosen}}})"),
                    ("kv-cache-full",),
                    ("kv_cache_usage",),
                ),
                Panel(
                    "Requests at a time",
                    "short",
                    "What the engines compute. Compare times at equal load only.",
                    _both(
                        lambda chosen: (
                            f"sum(max by (job, namespace, engine) (duet_engine_requests_running{{{chosen}}}))"
                        )
                    ),
                ),
            ),
        ),
    ),
    (Choice("other", "Other", "label_values(duet_draining, job)"),),
)
