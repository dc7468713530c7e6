"""Decision: measured points -> the best method and K at each load, and whether that is shown.

By goodput, never by acceptance: acceptance stays high while drafting already costs more than it gives.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import NormalDist

from launcher.measure.interval import Interval
from launcher.speculation.evidence import Choice, Origin, Point

OFF = "off"
LOSS = 0.03
"""Share of goodput below that of K 0, or of the best K, that is never accepted knowingly."""
_TIE = 0.01
"""Share of goodput within which a smaller K is as good as a larger one."""
_ALPHA = 0.05
_SURE = NormalDist().inv_cdf(1 - _ALPHA / 2)


@dataclass(frozen=True, slots=True)
class _Cell:
    """One method and K at one load, over all temperatures."""

    method: str
    k: int
    goodput: float
    error: float
    """Standard error of the goodput's logarithm; infinite where it is not known."""


def choices(points: Sequence[Point], weights: Mapping[float, float], method: str) -> tuple[Choice, ...]:
    """For each load at which K 0 and this method were measured, in rising order.

    ``weights``: shares of the temperatures in the workload. Only measured points count. A K is chosen when it is shown
    to give more than K 0; ``gain`` and ``of_best`` hold for all K of a load at once (95 %).
    """
    found = []
    measured = sorted((each for each in points if each.origin is Origin.MEASURED), key=lambda each: each.concurrency)
    for concurrency, group in groupby(measured, key=lambda each: each.concurrency):
        cells = _cells([*group], weights)
        off = next((each for each in cells if each.k == 0), None)
        mine = [each for each in cells if each.k and each.method == method]
        if off is not None and mine:
            found.append(_choice(concurrency, off, mine, cells))
    return tuple(found)


def undecided(
    chosen: Iterable[Choice], points: Sequence[Point], weights: Mapping[float, float], method: str
) -> dict[int, set[int]]:
    """Loads at which more measuring may change the choice for the better, and the K of this method to measure there.

    Those are K whose goodput seems to be above the chosen one's by more than :data:`LOSS`, so that leaving them would
    break the promise if it were true.
    """
    found: dict[int, set[int]] = {}
    for choice in chosen:
        at_load = [each for each in points if each.concurrency == choice.concurrency]
        cells = _cells(at_load, weights)
        mine = next((each for each in cells if each.k == choice.k and each.method in (choice.method, OFF)), None)
        if mine is None:
            continue
        better = {each.k for each in cells if each.method == method and each.goodput > mine.goodput * (1 + LOSS)}
        if better:
            found[choice.concurrency] = better | {choice.k}
    return found


def pooled(rounds: Sequence[Point]) -> tuple[Point, ...]:
    """Points that are the same method, K, load and temperature become one, weighed by how sure each is."""

    def key(each: Point) -> tuple[int, float, str, int]:
        return each.concurrency, each.temperature, each.method, each.k

    found = []
    for _, group in groupby(sorted(rounds, key=key), key=key):
        same = [*group]
        found.append(
            replace(
                same[0],
                goodput=_together(same, lambda each: each.goodput),
                throughput=_together(same, lambda each: each.throughput),
                tpot=_together(same, lambda each: each.tpot),
                ttft=_together(same, lambda each: each.ttft),
                acceptance=_mean(each.acceptance for each in same),
                acceptance_length=_mean(each.acceptance_length for each in same),
                requests=sum(each.requests for each in same),
                failed=sum(each.failed for each in same),
            )
        )
    return tuple(found)


def goodput_ratio(one: Sequence[Point], other: Sequence[Point], weights: Mapping[float, float]) -> Interval:
    """Of two settings at one load, each with a point or several for every temperature."""
    (mine,), (theirs,) = (_cells(pooled(each), weights) for each in (one, other))
    return _ratio(mine, theirs, _SURE)


def _choice(concurrency: int, off: _Cell, mine: Sequence[_Cell], cells: Sequence[_Cell]) -> Choice:
    # As many comparisons with K 0 as there are K: each must be surer, so that all together are right.
    sure = NormalDist().inv_cdf(1 - _ALPHA / 2 / len(mine))
    shown = [each for each in mine if _ratio(each, off, sure).low > 1]
    top = max(mine, key=lambda each: each.goodput)
    best = max(cells, key=lambda each: each.goodput)
    if not shown:
        gain = _ratio(top, off, sure)
        if off.goodput <= 0 and top.goodput <= 0:
            reason = (
                "no request met the objectives, with or without speculation: lower the load, or raise the objectives"
            )
        elif gain.high < 1:
            reason = f"every K is slower; the best of them, {top.k}, gives {_percent(gain.value)}"
        elif math.isinf(gain.high):
            reason = f"K {top.k} seems to give {_percent(gain.value)}, but the time was too short to tell chance apart"
        else:
            reason = f"no gain is shown: the best K, {top.k}, gives {_percent(gain.value)} ({_range(gain)})"
        return Choice(concurrency, OFF, 0, Interval(1.0, 1.0, 1.0), _ratio(off, best, sure), reason)
    lead = max(shown, key=lambda each: each.goodput)
    chosen = min((each for each in shown if each.goodput >= lead.goodput * (1 - _TIE)), key=lambda each: each.k)
    gain = _ratio(chosen, off, sure)
    reason = f"K {chosen.k} gives {_percent(gain.value)} ({_range(gain)})"
    if chosen is not lead:
        reason += f"; K {lead.k} is no better by more than {_TIE:.0%}"
    return Choice(concurrency, chosen.method, chosen.k, gain, _ratio(chosen, best, sure), reason)


def _cells(points: Sequence[Point], weights: Mapping[float, float]) -> list[_Cell]:
    """A workload's requests come with all its temperatures: its time is the sum of theirs."""

    def key(each: Point) -> tuple[str, int]:
        return each.method, each.k

    found = []
    for (method, k), group in groupby(sorted(points, key=key), key=key):
        same = [*group]
        total = sum(weights.get(each.temperature, 0.0) for each in same) or 1.0
        if any(each.throughput.value <= 0 for each in same):
            found.append(_Cell(method, k, 0.0, math.inf))
            continue
        shares = [weights.get(each.temperature, 0.0) / total for each in same]
        times = [share / each.throughput.value for share, each in zip(shares, same, strict=True)]
        met = [each.goodput.value / each.throughput.value for each in same]
        within = sum(share * part for share, part in zip(shares, met, strict=True))
        error = math.sqrt(
            sum((time / sum(times) * _error(each.goodput)) ** 2 for time, each in zip(times, same, strict=True) if time)
        )
        found.append(_Cell(method, k, within / sum(times), error))
    return found


def _ratio(one: _Cell, other: _Cell, sure: float) -> Interval:
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
    return (interval.high - interval.low) / 2 / _SURE / interval.value


def _together(same: Sequence[Point], of: Callable[[Point], Interval]) -> Interval:
    """Weighed by requests: a visit's own interval is too rough a guess to weigh it by.

    A visit without an interval of its own, as it was too slow for one, counts as no surer than the least sure one.
    """
    seen = [(of(each), each.requests) for each in same if math.isfinite(of(each).value)]
    reach = [(each.high - each.low) / 2 / each.value for each, _ in seen if each.value and math.isfinite(each.high)]
    total = sum(requests for _, requests in seen)
    if len(same) == 1 or not total or not reach:
        return of(same[0])
    shares = [requests / total for _, requests in seen]
    values = [each.value for each, _ in seen]
    halves = [(each.high - each.low) / 2 if math.isfinite(each.high) else max(reach) * each.value for each, _ in seen]
    value = sum(share * each for share, each in zip(shares, values, strict=True))
    half = math.sqrt(sum((share * each) ** 2 for share, each in zip(shares, halves, strict=True)))
    # What differs between visits more than their own intervals say widens the common one.
    spread = sum((share * (each - value)) ** 2 for share, each in zip(shares, values, strict=True))
    half = max(half, _SURE * math.sqrt(spread * len(seen) / max(1, len(seen) - 1)))
    return Interval(value, value - half, value + half)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f} % goodput" if math.isfinite(ratio) else "goodput where K 0 has none"


def _range(ratio: Interval) -> str:
    high = f"{100 * (ratio.high - 1):+.0f} %" if math.isfinite(ratio.high) and ratio.high < 100 else "no bound"
    return f"{100 * (ratio.low - 1):+.0f} % to {high}"
