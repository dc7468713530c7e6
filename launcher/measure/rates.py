"""Decision: requests that ran at the same time -> rates, with an interval."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from launcher.measure.interval import Interval
from launcher.measure.sample import Sample

_MOST_SLICES = 10
_LEAST_SLICES = 4


def met(sample: Sample, ttft: float | None, tpot: float | None) -> bool:
    """Whether the answer is complete and within these objectives, in seconds; ``None``: no objective.

    A single token has no time by further token, so it is within any.
    """
    if sample.error is not None or sample.ttft is None:
        return False
    if ttft is not None and sample.ttft > ttft:
        return False
    return tpot is None or sample.tpot is None or sample.tpot <= tpot


def token_rate(
    samples: Sequence[Sample], start: float, end: float, counted: Callable[[Sample], bool] = lambda _: True
) -> Interval:
    """Output tokens a second of the requests ``counted``, between two times of the run.

    A request's tokens are spread evenly over the time in which it streamed, so that one at an end of the window counts
    by its part. The interval is Student's over slices of the window, each at least as long as a usual request:
    requests that run together are slow together, so they are not as many observations as they seem. Infinite bounds
    for fewer than four slices.
    """
    spans = [
        (each.sent + each.ttft, each.sent + max(each.total, each.ttft + 1e-9), each.tokens)
        for each in samples
        if each.ttft is not None and counted(each)
    ]
    if end <= start:
        return Interval(0.0, -math.inf, math.inf)

    def between(first: float, last: float) -> float:
        inside = sum(
            tokens * max(0.0, min(last, until) - max(first, since)) / (until - since) for since, until, tokens in spans
        )
        return inside / (last - first)

    usual = fmean(each.total for each in samples) if samples else end - start
    count = min(_MOST_SLICES, math.floor((end - start) / max(usual, 1e-9)))
    if count < _LEAST_SLICES:
        return Interval(between(start, end), -math.inf, math.inf)
    width = (end - start) / count
    return mean([between(start + number * width, start + (number + 1) * width) for number in range(count)])


def mean(values: Sequence[float]) -> Interval:
    """With Student's interval of 95 %; infinite bounds for fewer than two values."""
    from scipy.stats import t

    middle = fmean(values)
    if len(values) < 2:
        return Interval(middle, -math.inf, math.inf)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Interval(middle, middle - half, middle + half)


def median(values: Sequence[float]) -> Interval:
    """With the interval of 95 % that the order of the values gives; infinite bounds for fewer than six."""
    from scipy.stats import binom

    if not values:
        return Interval(math.nan, -math.inf, math.inf)
    ordered = sorted(values)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    below = int(binom.ppf(0.025, n, 0.5)) - 1
    if below < 0:
        return Interval(middle, -math.inf, math.inf)
    return Interval(middle, ordered[below], ordered[n - 1 - below])
