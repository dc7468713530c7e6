"""Decision: what a server did by second, from the mean of slices of the time."""

import itertools
import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from launcher.measure.figures_shape import Span
from launcher.measure.interval import Interval
from launcher.measure.sample import Sample

_MOST = 20
_LEAST = 5
"""Slices without which nothing is said of the spread."""


Amount = Callable[[Sample, float, float], float]
"""Of one request between two times."""


def rate(samples: Sequence[Sample], span: Span, amount: Amount) -> Interval:
    """Each second, by Student's t of slices; without bounds where they are too few."""
    from scipy import stats

    found = slices(samples, span, amount)
    if len(found) < _LEAST:
        return Interval(sum(found) / len(found) if found else 0.0, -math.inf, math.inf)
    far = stdev(found) * float(stats.t.ppf(0.975, len(found) - 1)) / math.sqrt(len(found))
    return Interval(fmean(found), fmean(found) - far, fmean(found) + far)


def slices(samples: Sequence[Sample], span: Span, amount: Amount) -> Sequence[float]:
    """Each second, in equal parts of the span one after the other."""
    return [
        sum(amount(each, start, end) for each in samples) / (end - start)
        for start, end in itertools.pairwise(_cuts(samples, span))
    ]


def _cuts(samples: Sequence[Sample], span: Span) -> list[float]:
    """A part is not shorter than the usual answer: those would depend on each other."""
    lasted = sorted(each.total for each in samples if each.error is None)
    usual = lasted[len(lasted) // 2] if lasted else 0.0
    count = _MOST if usual <= 0 else max(1, min(_MOST, int(span.seconds / usual)))
    return [span.start + span.seconds * number / count for number in range(count + 1)] if span.seconds > 0 else []


def output(sample: Sample, start: float, end: float) -> float:
    """Output tokens between two times; a stream's are even between its first and its last event.

    So what a request got before or after the span is not counted in it, however long the answer.
    """
    first = sample.sent + (sample.total if sample.ttft is None else sample.ttft)
    last = sample.sent + sample.total
    if last <= first:
        return float(sample.tokens if start <= first < end else 0)
    at_first = 1.0 if start <= first < end and sample.tokens else 0.0
    inside = max(0.0, min(end, last) - max(start, first)) / (last - first)
    return at_first + inside * max(0, sample.tokens - 1)


def prompt(sample: Sample, start: float, end: float) -> float:
    """Prompt tokens, even between sending it and its first token."""
    first = sample.total if sample.ttft is None else sample.ttft
    inside = max(0.0, min(end, sample.sent + first) - max(start, sample.sent))
    return inside / first * (sample.prompt_tokens or 0) if first > 0 else 0.0


def ended(sample: Sample, start: float, end: float) -> float:
    """Whether it ended then."""
    return float(start <= sample.sent + sample.total < end)
