"""Whether speculation pays."""

from tests.dashboards.parts import Page, Panel, Query, Row, engine_now, engine_rate, quantile, share

_DRAFTED = engine_rate("duet_engine_draft_tokens_total")
_ACCEPTED = engine_rate("duet_engine_accepted_tokens_total")
_DRAFTS = engine_rate("duet_engine_drafts_total")
_BY_POSITION = engine_rate("duet_engine_accepted_tokens_by_position_total", "position")
_TPOT_SUM = engine_rate("duet_engine_tpot_seconds_sum", more='role!="prefill",')
_TPOT_COUNT = engine_rate("duet_engine_tpot_seconds_count", more='role!="prefill",')

PAGE = Page(
    "speculation",
    "Duet: speculation",
    "Whether speculation pays: how much of the drafts is accepted, and what a token costs. Empty without speculation.",
    (
        Row(
            "Drafts",
            (
                Panel(
                    "Acceptance",
                    "percentunit",
                    "Of the draft tokens, those that the model accepts. Good: above both lines.",
                    (Query(share(_ACCEPTED, _DRAFTED), "{{engine}}"),),
                    ("acceptance-low", "acceptance-below-break-even"),
                    ("acceptance", "break_even"),
                ),
                Panel(
                    "Tokens by step",
                    "short",
                    "The model's own and those accepted, of the last minute. Good: near 1 + the draft's length.",
                    (Query(engine_now("duet_engine_mean_acceptance_length"), "{{engine}}"),),
                    ("acceptance-low",),
                ),
                Panel(
                    "Acceptance by place in the draft",
                    "percentunit",
                    "Of all drafts, those accepted up to this token. Where it is near 0 the draft is too long.",
                    (
                        Query(
                            f"({_BY_POSITION}) / on () group_left () (sum({_DRAFTS}) > 0)",
                            "{{position}}",
                        ),
                    ),
                    ("acceptance-low",),
                ),
                Panel(
                    "Draft tokens",
                    "short",
                    "By second: what was proposed, and what of it was accepted.",
                    (
                        Query(_DRAFTED, "{{engine}}: proposed"),
                        Query(_ACCEPTED, "{{engine}}: accepted"),
                    ),
                ),
            ),
        ),
        Row(
            "What it saves",
            (
                Panel(
                    "Time by output token, mean",
                    "s",
                    "Good: below the line, which is what you have measured without speculation (`proxy.alerts`).",
                    (Query(share(_TPOT_SUM, _TPOT_COUNT), "{{engine}}"),),
                    ("speculation-net-negative",),
                    ("tpot_without_speculation",),
                ),
                Panel(
                    "Time by output token, p95",
                    "s",
                    "Of each request. Good: even.",
                    (Query(quantile(0.95, "duet_engine_tpot_seconds", "engine", 'role!="prefill",'), "{{engine}}"),),
                    ("speculation-net-negative",),
                ),
                Panel(
                    "Between two events, p95",
                    "s",
                    "Under speculation one event has several tokens: compare it with no deployment without.",
                    (Query(quantile(0.95, "duet_engine_itl_seconds", "engine", 'role!="prefill",'), "{{engine}}"),),
                ),
                Panel(
                    "Requests at a time",
                    "short",
                    "Speculation saves most with few; with many the model's own batches are full.",
                    (Query(engine_now("duet_engine_requests_running", more='role!="prefill",'), "{{engine}}"),),
                    ("acceptance-below-break-even",),
                ),
            ),
        ),
    ),
)
