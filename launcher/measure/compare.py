"""Decision: pairs of blocks -> by how much B is better or worse, and whether that is shown.

Blocks of one pair run right after each other and get the same requests, so what both have in common cancels: the
machine's mood and the requests themselves. Only pairs count as observations, not requests: those of one block depend
on each other, and a hundred thousand of them say nothing of how much another start would differ.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

from launcher.measure.compare_shape import Block, Comparison, Effect, Metric, Quality, Side, Verdict
from launcher.measure.figures_shape import Figures, Objectives
from launcher.measure.interval import Interval

MARGIN = 0.05
"""Share by which a metric may differ and still count as the same."""
_ALPHA = 0.05

TTFT = Metric("ttft", "TTFT, median", "s", more_is_better=False)
TPOT = Metric("tpot", "time by output token, median", "s", more_is_better=False)
THROUGHPUT = Metric("throughput", "output tokens a second", "tokens/s", more_is_better=True)
GOODPUT = Metric("goodput", "output tokens a second within objectives", "tokens/s", more_is_better=True)
METRICS = (TTFT, TPOT, THROUGHPUT, GOODPUT)


def measured(figures: Figures) -> Mapping[str, float]:
    """The metrics of one block, by name; those that it does not tell are left out.

    Without any objective there is no goodput: it would be the throughput of complete answers again.
    """
    told: dict[str, float] = {THROUGHPUT.name: figures.output_rate.value}
    if first := figures.ttft.percentiles[50]:
        told[TTFT.name] = first.value
    if further := figures.tpot.percentiles[50]:
        told[TPOT.name] = further.value
    if figures.objectives != Objectives():
        told[GOODPUT.name] = figures.good_output_rate.value
    return told


def compare(
    a: str,
    b: str,
    blocks: Sequence[Block],
    quality: Quality | None = None,
    *,
    margin: float = MARGIN,
    notes: Iterable[str] = (),
) -> Comparison:
    """The names of both sides and all their blocks, with the metrics of each."""
    effects = tuple(
        effect(metric, _paired(metric, blocks), margin)
        for metric in METRICS
        if metric is not GOODPUT or any(metric.name in block.metrics for block in blocks)
    )
    verdict = overall(effects, quality)
    return Comparison(a, b, effects, quality, verdict, _sentence(a, b, effects, quality, verdict), tuple(notes))


def effect(metric: Metric, pairs: Sequence[tuple[float, float]], margin: float = MARGIN) -> Effect:
    """Of values of A and B, a pair for each pair of blocks: Student's interval of the mean log ratio."""
    from scipy.stats import t

    usable = [(one, other) for one, other in pairs if one > 0 and other > 0]
    means = [math.exp(fmean(math.log(pair[side]) for pair in usable)) if usable else None for side in (0, 1)]
    logs = [math.log(other / one) for one, other in usable]
    if len(usable) < max(2, len(pairs)):
        ratio = Interval(math.exp(fmean(logs)) if logs else math.nan, 0.0, math.inf)
        reason = (
            f"{len(pairs) - len(usable)} of {len(pairs)} pairs of blocks have no {metric.title} on one side"
            if len(usable) < len(pairs)
            else f"{len(usable)} pairs of blocks tell nothing of how much another would differ: ask for more"
        )
        return Effect(metric, means[0], means[1], ratio, len(usable), 1.0, Verdict.UNKNOWN, reason)
    middle, error, freedom = fmean(logs), stdev(logs) / math.sqrt(len(logs)), len(logs) - 1
    half = float(t.ppf(1 - _ALPHA / 2, freedom)) * error
    ratio = Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
    p = 2 * float(t.sf(abs(middle) / error, freedom)) if error > 0 else (0.0 if middle else 1.0)
    verdict, reason = _judged(metric, ratio, margin)
    return Effect(metric, means[0], means[1], ratio, len(usable), p, verdict, reason)


def overall(effects: Sequence[Effect], quality: Quality | None) -> Verdict:
    """Of all metrics together, and of quality.

    Several metrics are several chances to be wrong, so here differences count by Holm's method only: together they are
    wrong in at most 5 of 100 comparisons of equals. Quality, where it is shown to be worse, counts by itself.
    """
    shown: set[Verdict] = set()
    for rank, each in enumerate(sorted(effects, key=lambda each: each.p)):
        if each.p > _ALPHA / (len(effects) - rank):
            break
        shown.add(each.verdict)
    if quality is not None and quality.verdict is Verdict.WORSE:
        shown.add(Verdict.WORSE)
    shown &= {Verdict.BETTER, Verdict.WORSE}
    if len(shown) == 2:
        return Verdict.TRADED
    if shown:
        return shown.pop()
    same = all(each.verdict is not Verdict.UNKNOWN for each in effects) and bool(effects)
    return Verdict.SAME if same else Verdict.UNKNOWN


def _judged(metric: Metric, ratio: Interval, margin: float) -> tuple[Verdict, str]:
    told = f"{change(ratio.value)} ({change(ratio.low)} to {change(ratio.high)})"
    if ratio.low > 1 or ratio.high < 1:
        is_better = (ratio.low > 1) is metric.more_is_better
        within = ", though within the margin" if 1 - margin <= ratio.low and ratio.high <= 1 + margin else ""
        return (Verdict.BETTER if is_better else Verdict.WORSE), told + within
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return Verdict.SAME, f"{told}: within {margin:.0%}"
    return Verdict.UNKNOWN, f"{told}: neither a difference nor its absence is shown; ask for more pairs"


def change(ratio: float) -> str:
    """A ratio as people read it: ``+12 %``, or ``3.1 x`` where it is a multiple."""
    if not math.isfinite(ratio):
        return "?"
    return f"{ratio:.1f} x" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"


def _paired(metric: Metric, blocks: Sequence[Block]) -> list[tuple[float, float]]:
    """A value for each pair that is complete; 0 where a side does not tell."""
    found: dict[int, dict[Side, float]] = {}
    for block in blocks:
        found.setdefault(block.pair, {})[block.side] = block.metrics.get(metric.name, 0.0)
    return [(sides[Side.A], sides[Side.B]) for sides in found.values() if len(sides) == 2]


def _sentence(a: str, b: str, effects: Sequence[Effect], quality: Quality | None, verdict: Verdict) -> str:
    parts = [f"{each.metric.title} {change(each.ratio.value)} ({each.verdict})" for each in effects]
    if quality is not None:
        parts.append(f"quality: {quality.verdict}")
    return f"{b} against {a}: {verdict}. {'; '.join(parts)}."
