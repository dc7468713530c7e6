"""Speculation that brings nothing."""

from collections.abc import Iterator

from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Sight

_LEAST_DRAFTS = 100.0
"""Draft tokens below which an acceptance rate is chance."""


def _acceptance(sight: Sight, name: str) -> float | None:
    engine = sight.engine(name)
    drafted = engine.counted("duet_engine_draft_tokens_total")
    return engine.counted("duet_engine_accepted_tokens_total") / drafted if drafted >= _LEAST_DRAFTS else None


def _low(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("acceptance")
    for name in sight.engine_names:
        rate = _acceptance(sight, name)
        if limit is not None and rate is not None and rate < limit:
            yield Evidence(name, f"{rate:.0%} of the draft tokens {sight.period} were accepted, wanted {limit:.0%}")


def _below_break_even(sight: Sight) -> Iterator[Evidence]:
    low, limit = sight.threshold("acceptance"), sight.threshold("break_even")
    for name in sight.engine_names:
        rate = _acceptance(sight, name)
        if limit is not None and rate is not None and (low or 0.0) <= rate < limit:
            yield Evidence(
                name, f"{rate:.0%} of the draft tokens {sight.period} were accepted, break-even is {limit:.0%}"
            )


def _net_negative(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("tpot_without_speculation")
    for name in sight.engine_names:
        engine = sight.engine(name)
        requests = engine.counted("duet_engine_tpot_seconds_count")
        if limit is None or not requests or not engine.counted("duet_engine_draft_tokens_total"):
            continue
        mean = engine.counted("duet_engine_tpot_seconds_sum") / requests
        if mean > limit:
            text = (
                f"{mean * 1000:.1f} ms by token {sight.period}, {limit * 1000:.1f} ms were measured without speculation"
            )
            yield Evidence(name, text)


CHECKS = (
    Check(
        Problem(
            "speculation-net-negative",
            Severity.WARNING,
            "With speculation tokens take longer than without.",
            "Under load, checking drafts takes time that other requests need; or too few drafts are accepted.",
            "`duet_engine_tpot_seconds` beside `proxy.alerts.tpot_without_speculation`; `duet_engine_requests_running`",
            "`launcher tune speculation` finds how many tokens to draft at each load, and whether any; "
            "`launcher operate speculation` lowers that or switches it off while it does not pay.",
            "DuetSpeculationNetNegative",
        ),
        _net_negative,
    ),
    Check(
        Problem(
            "acceptance-low",
            Severity.WARNING,
            "Speculation brings nothing: few draft tokens are accepted.",
            "A draft that was not trained for this model, a high temperature, output that does not repeat the prompt "
            "(for "
            "ngram), or with PD a draft whose KV never gets to decode (then acceptance is close to 0).",
            "`duet_engine_acceptance_rate`, `duet_engine_accepted_tokens_by_position_total`; the temperature of "
            "requests",
            "Another draft, a lower temperature (or requests of high temperature in a pool of their own), or off. "
            "Fewer tokens per draft (`num_speculative_tokens`) if only the first positions are accepted. "
            "`launcher operate speculation` does that by itself.",
            "DuetAcceptanceLow",
        ),
        _low,
    ),
    Check(
        Problem(
            "acceptance-below-break-even",
            Severity.WARNING,
            "Speculation probably costs more than it saves.",
            "Less than about half of the draft tokens are accepted; where the break-even is depends on draft and load.",
            "`duet_engine_acceptance_rate`, `duet_engine_mean_acceptance_length`",
            "Measure time by output token with and without (`proxy.alerts.tpot_without_speculation` then tells for "
            "sure); "
            "set `proxy.alerts.break_even` to what you found.",
            "DuetAcceptanceBelowBreakEven",
        ),
        _below_break_even,
    ),
)
