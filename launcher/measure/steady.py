"""Decision: whether the time that is counted was all alike; else its figures are of no state in particular."""

from collections.abc import Iterator, Sequence

from launcher.measure.figures_shape import Span
from launcher.measure.rates import output, slices
from launcher.measure.sample import Sample

_SURE = 0.005
"""Of each of two tests: in 1 of 100 runs something is said that is not so."""
_MATTERS = 0.1
"""A change by less is not worth saying."""
_LEAST = 12
"""Slices, or groups of requests, without which nothing can be said."""
_GROUPS, _GROUP = 20, 5
"""Groups of consecutive requests, and members of one: single requests that were served together are alike."""


def unsteady(samples: Sequence[Sample], span: Span) -> Iterator[str]:
    """What changed within the span: tokens a second between its halves, TTFT from its beginning to its end."""
    yield from _speed(samples, span)
    yield from _waiting([each for each in samples if span.start <= each.sent < span.end], span)


def _speed(samples: Sequence[Sample], span: Span) -> Iterator[str]:
    import numpy as np
    from scipy import stats

    speeds = np.asarray(slices(samples, span, output))
    if len(speeds) < _LEAST or np.ptp(speeds) <= _MATTERS * speeds.max():
        return
    first, second = np.array_split(speeds, 2)
    before, after = float(first.mean()), float(second.mean())
    if abs(after - before) <= _MATTERS * max(before, after):
        return
    if stats.mannwhitneyu(first, second).pvalue < _SURE:
        yield (
            f"not steady: {before:,.1f} output tokens a second in the first half, {after:,.1f} in the second; "
            "measure longer, or with a longer warm-up"
        )


def _waiting(samples: Sequence[Sample], span: Span) -> Iterator[str]:
    import numpy as np
    from scipy import stats

    told = sorted((each.sent, each.ttft) for each in samples if each.ttft is not None)
    groups = min(_GROUPS, len(told) // _GROUP)
    if groups < _LEAST:
        return
    sent, ttft = np.array([np.median(part, axis=0) for part in np.array_split(np.array(told), groups)]).T
    change, usual = float(stats.theilslopes(ttft, sent).slope) * span.seconds, float(np.median(ttft))
    if abs(change) > _MATTERS * usual and stats.kendalltau(sent, ttft).pvalue < _SURE:
        why = (
            "more comes than is served, and a longer run would tell of longer waits: lower the load"
            if change > 0
            else "caches may have been filling, or others were busy at first: measure with a longer warm-up"
        )
        yield f"not steady: TTFT {'rose' if change > 0 else 'fell'} by {abs(change) * 1000:,.0f} ms meanwhile; {why}"
