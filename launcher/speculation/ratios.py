"""Decision: goodput of one setting at one load, over all temperatures, against that of another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist

from launcher.measure.interval import Interval
from launcher.speculation.evidence import Point

SURE = NormalDist().inv_cdf(0.975)
"""Standard errors to each side of an interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One method and K at one load, over all temperatures."""

    method: str
    k: int
    goodput: float
    error: float
    """Standard error of the goodput's logarithm; infinite where it is not known."""


def goodput_ratio(one: Sequence[Point], other: Sequence[Point], weights: Mapping[float, float]) -> Interval:
    """Of two settings at one load, each with one point for every temperature."""
    (mine,), (theirs,) = (cells_of(each, weights) for each in (one, other))
    return ratio(mine, theirs, SURE)


def cells_of(points: Sequence[Point], weights: Mapping[float, float]) -> list[Cell]:
    """A workload's requests come with all its temperatures: its time is the sum of theirs."""

    def key(each: Point) -> tuple[str, int]:
        return each.method, each.k

    found = []
    for (method, k), group in groupby(sorted(points, key=key), key=key):
        same = [*group]
        total = sum(weights.get(each.temperature, 0.0) for each in same) or 1.0
        if any(each.throughput.value <= 0 for each in same):
            found.append(Cell(method, k, 0.0, math.inf))
            continue
        shares = [weights.get(each.temperature, 0.0) / total for each in same]
        times = [share / each.throughput.value for share, each in zip(shares, same, strict=True)]
        met = [each.goodput.value / each.throughput.value for each in same]
        within = sum(share * part for share, part in zip(shares, met, strict=True))
        error = math.sqrt(
            sum((time / sum(times) * _error(each.goodput)) ** 2 for time, each in zip(times, same, strict=True) if time)
        )
        found.append(Cell(method, k, within / sum(times), error))
    return found


def ratio(one: Cell, other: Cell, sure: float) -> Interval:
    """Goodput of one over that of the other, so many standard errors to each side."""
    if one is other:
        return Interval(1.0, 1.0, 1.0)
    if one.goodput <= 0:
        return Interval(0.0, 0.0, math.inf)
    if other.goodput <= 0:  # any is infinitely more than none, once it is sure that there is any
        return Interval(math.inf, 0.0 if math.isinf(one.error) else math.inf, math.inf)
    value, half = one.goodput / other.goodput, sure * math.hypot(one.error, other.error)
    if not math.isfinite(half):
        return Interval(value, 0.0, math.inf)
    return Interval(value, value * math.exp(-half), value * math.exp(min(half, 100.0)))


def _error(interval: Interval) -> float:
    if interval.value <= 0 or not math.isfinite(interval.high) or not math.isfinite(interval.low):
        return math.inf
    return (interval.high - interval.low) / 2 / SURE / interval.value
