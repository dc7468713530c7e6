"""Decision: rows of a comparison's tables."""

import math

from launcher.measure.compare import change
from launcher.measure.compare_asked import Compared
from launcher.measure.compare_shape import Effect

EFFECT_COLUMNS = ("", "A", "B", "B against A", "95 % interval", "verdict")
BLOCK_COLUMNS = ("block", "side", "TTFT", "time by token", "tokens/s", "requests", "failed")


def effects(of: Compared) -> list[tuple[str, ...]]:
    """TTFT and the time by token are next to each other."""
    rows: list[tuple[str, ...]] = [
        (
            each.metric.title,
            _value(each, each.a),
            _value(each, each.b),
            change(each.ratio.value),
            f"{change(each.ratio.low)} to {change(each.ratio.high)}" if math.isfinite(each.ratio.high) else "–",
            each.verdict.value,
        )
        for each in of.comparison.effects
    ]
    if (quality := of.comparison.quality) is not None:
        title = "right answers" if quality.kind == "answers" else "texts as A's"
        interval = f"{0 - quality.loss.high:+.1f} to {0 - quality.loss.low:+.1f} points"
        lost = f"{0 - round(quality.loss.value, 1):+.1f} points"
        rows.append((title, f"{quality.a:.0%}", f"{quality.b:.0%}", lost, interval, quality.verdict.value))
    return rows


def blocks(of: Compared) -> list[tuple[str, ...]]:
    """In the order in which they ran."""
    return [
        (
            f"{number}",
            each.side.value.upper(),
            _seconds(each.metrics.get("ttft")),
            _seconds(each.metrics.get("tpot")),
            f"{each.metrics.get('throughput', 0.0):,.1f}",
            f"{each.requests}",
            f"{each.failed}",
        )
        for number, each in enumerate(of.blocks, start=1)
    ]


def _value(effect: Effect, value: float | None) -> str:
    if value is None:
        return "–"
    return _seconds(value) if effect.metric.unit == "s" else f"{value:,.1f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{1000 * value:,.1f} ms"
