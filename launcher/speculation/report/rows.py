"""Decision: evidence -> rows of tables, for a terminal and for the page."""

import math
from collections.abc import Sequence

from launcher.measure.interval import Interval
from launcher.speculation.evidence import Evidence, Point

POINT_COLUMNS = (
    "at once",
    "temperature",
    "method",
    "K",
    "goodput, tokens/s",
    "TTFT",
    "time by token",
    "accepted",
    "tokens by step",
    "requests",
    "",
)
CHOICE_COLUMNS = ("at once", "method", "K", "goodput against K 0", "against the best fixed K", "why")


def points(evidence: Evidence) -> list[tuple[str, ...]]:
    """By load, temperature, method and K."""
    return [_point(each) for each in ordered(evidence.points)]


def ordered(of: Sequence[Point]) -> list[Point]:
    """As tables and plots show them."""
    return sorted(of, key=lambda each: (each.concurrency, each.temperature, each.method != "off", each.method, each.k))


def choices(evidence: Evidence) -> list[tuple[str, ...]]:
    """By load."""
    return [
        (f"{each.concurrency}", each.method, f"{each.k}", times(each.gain), times(each.of_best), each.reason)
        for each in evidence.choices
    ]


def schedule(evidence: Evidence) -> str:
    """As a profile says it."""
    return f"[{', '.join(f'[{first}, {last}, {k}]' for first, last, k in evidence.schedule)}]"


def times(ratio: Interval) -> str:
    """E.g. ``x 1.42 (1.35 to 1.50)``."""
    if not math.isfinite(ratio.value):
        return "from none to some"
    if math.isinf(ratio.high):
        return f"× {ratio.value:.2f} (interval unknown)"
    known = math.isfinite(ratio.high) and (ratio.low, ratio.high) != (ratio.value, ratio.value)
    return f"× {ratio.value:.2f}" + (f" ({ratio.low:.2f} to {ratio.high:.2f})" if known else "")


def _point(each: Point) -> tuple[str, ...]:
    return (
        f"{each.concurrency}",
        f"{each.temperature:g}",
        each.method,
        f"{each.k}",
        _value(each.goodput, 1.0, 1),
        _value(each.ttft, 1000.0, 0, " ms"),
        _value(each.tpot, 1000.0, 1, " ms"),
        "–" if each.acceptance is None else f"{each.acceptance:.0%}",
        "–" if each.acceptance_length is None else f"{each.acceptance_length:.2f}",
        f"{each.requests}" + (f", {each.failed} failed" if each.failed else ""),
        each.origin.value,
    )


def _value(of: Interval, factor: float, digits: int, unit: str = "") -> str:
    if not math.isfinite(of.value):
        return "–"
    if not math.isfinite(of.high - of.low):
        return f"{factor * of.value:,.{digits}f}{unit}"
    return f"{factor * of.value:,.{digits}f} ± {factor * (of.high - of.low) / 2:,.{digits}f}{unit}"
