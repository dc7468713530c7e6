"""Decision: percentiles and means of latencies, with intervals that hold for requests that are slow together."""

import math
from collections.abc import Sequence
from functools import cache

from launcher.measure.dependence import Dependence, dependence, independent
from launcher.measure.figures_shape import Distribution
from launcher.measure.interval import Interval

PERCENTS = (50, 90, 95, 99)
_TAIL = 0.025
_ENOUGH = 10_000
"""Requests from which every percentile is told when they are independent."""


def distribution(values: Sequence[float]) -> Distribution:
    """Of latencies in the order in which their requests were sent."""
    return Distribution(len(values), mean(values), {percent: percentile(values, percent) for percent in PERCENTS})


def mean(values: Sequence[float]) -> Interval:
    """By Student's t; without bounds where there are too few values, not a number for none.

    Of few values, or of ones that queued, it is less sure than it says: a mean hangs on the longest ones.
    """
    import numpy as np
    from scipy import stats

    if len(values) == 0:
        return Interval(math.nan, -math.inf, math.inf)
    array = np.asarray(values, dtype=float)
    value = float(array.mean())
    if len(array) < 2 or (known := dependence(array)) is None:
        return Interval(value, -math.inf, math.inf)
    far = float(stats.t.ppf(1 - _TAIL, known.freedom) * array.std(ddof=1) / math.sqrt(known.independent))
    return Interval(value, value - far, value + far)


def percentile(values: Sequence[float], percent: int) -> Interval | None:
    """By order statistics, so that no shape is assumed; ``None`` where there are too few values for both bounds.

    Without bounds where values depend on each other for so long that nothing is known of how far it may be off.
    """
    import numpy as np

    if len(values) == 0:
        return None
    array = np.asarray(values, dtype=float)
    value = float(np.quantile(array, percent / 100))
    known = dependence((array <= value).astype(float))
    if known is None:
        return Interval(value, -math.inf, math.inf) if len(array) >= needed(percent) else None
    if (ranks := _ranks(known, percent)) is None:
        return None
    times, ordered = len(array) / round(known.independent), np.sort(array)
    first, last = max(1, math.floor(ranks[0] * times)), min(len(array), math.ceil(ranks[1] * times))
    return Interval(value, float(ordered[first - 1]), float(ordered[last - 1]))


def share(are: Sequence[bool]) -> Interval:
    """Of the requests that are so, in the order of sending, by Clopper and Pearson; of none it is from 0 to 1."""
    import numpy as np
    from scipy import stats

    if not are:
        return Interval(math.nan, 0.0, 1.0)
    array = np.asarray(are, dtype=float)
    value = float(array.mean())
    if (known := dependence(array)) is None:
        return Interval(value, 0.0, 1.0)
    so, others, tail = value * known.independent, (1 - value) * known.independent, _tail(known)
    low = float(stats.beta.ppf(tail, so, others + 1)) if value > 0 else 0.0
    return Interval(value, low, float(stats.beta.ppf(1 - tail, so + 1, others)) if value < 1 else 1.0)


def _tail(known: Dependence) -> float:
    """Of Student's t, as the number of independent values is an estimate; were it known, it would be 2.5 %."""
    from scipy import stats

    return float(stats.norm.sf(stats.t.ppf(1 - _TAIL, known.freedom)))


def _ranks(known: Dependence, percent: int) -> tuple[int, int] | None:
    """Between which of so many independent values the true percentile is; ``None`` where one would have to be beyond.

    How many of them lie below it is binomial.
    """
    from scipy import stats

    count, tail = round(known.independent), _tail(known)
    low, high = (int(stats.binom.ppf(each, count, percent / 100)) for each in (tail, 1 - tail))
    return (low, high + 1) if low >= 1 and high + 1 <= count else None


@cache
def needed(percent: int) -> int:
    """Independent requests from which a percentile is told."""
    return next(count for count in range(5, _ENOUGH) if _ranks(independent(count), percent) is not None)
