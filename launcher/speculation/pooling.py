"""Decision: several visits of the same load -> one point."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from launcher.measure.interval import Interval
from launcher.speculation.evidence import Point
from launcher.speculation.ratios import SURE


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
    half = max(half, SURE * math.sqrt(spread * len(seen) / max(1, len(seen) - 1)))
    return Interval(value, value - half, value + half)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
