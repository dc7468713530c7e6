"""Decision: what a tuning knows of serving without speculation, by the load of one engine."""

import math
from collections.abc import Sequence

from launcher.operate.speculation.knowledge import Knowledge
from launcher.speculation.evidence import Evidence, Point

_NORMAL = 1.96
"""Standard errors on each side of an interval of 95 %."""


def knowledge(evidence: Evidence, engines: int) -> Knowledge:
    """From its points without speculation. ``engines``: how many generate; a tuning's load is that of all of them.

    A load that was measured at several temperatures is the geometric mean: without drafts they make no difference.
    """
    loads: dict[int, list[Point]] = {}
    for point in evidence.points:
        if point.k == 0 and point.tpot.value > 0:
            loads.setdefault(point.concurrency, []).append(point)
    return Knowledge({max(1.0, load / engines): _level(points) for load, points in loads.items()})


def _level(points: Sequence[Point]) -> tuple[float, float]:
    """Log time by output token, and its standard error; infinite where a bound is not known."""
    value = sum(math.log(each.tpot.value) for each in points) / len(points)
    spread = [(each.tpot.high - each.tpot.low) / (2 * _NORMAL * each.tpot.value) for each in points]
    return value, math.sqrt(sum(each**2 for each in spread)) / len(points)
