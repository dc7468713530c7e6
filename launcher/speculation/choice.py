"""Decision: measured points -> the best method and K at each load, and whether that is shown.

By goodput, never by acceptance: acceptance stays high while drafting already costs more than it gives.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import NormalDist

from launcher.measure.interval import Interval
from launcher.speculation.evidence import Choice, Origin, Point
from launcher.speculation.ratios import Cell, cells_of, ratio

OFF = "off"
LOSS = 0.03
"""Share of goodput below that of K 0, or of the best K, that is never accepted knowingly."""
_TIE = 0.01
"""Share of goodput within which a smaller K is as good as a larger one."""
_ALPHA = 0.05


def choices(points: Sequence[Point], weights: Mapping[float, float], method: str) -> tuple[Choice, ...]:
    """For each load at which K 0 and this method were measured, in rising order.

    ``weights``: shares of the temperatures in the workload. Only measured points count. A K is chosen when it is shown
    to give more than K 0; ``gain`` and ``of_best`` hold for all K of a load at once (95 %).
    """
    found = []
    measured = sorted((each for each in points if each.origin is Origin.MEASURED), key=lambda each: each.concurrency)
    for concurrency, group in groupby(measured, key=lambda each: each.concurrency):
        cells = cells_of([*group], weights)
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
        cells = cells_of(at_load, weights)
        mine = next((each for each in cells if each.k == choice.k and each.method in (choice.method, OFF)), None)
        if mine is None:
            continue
        better = {each.k for each in cells if each.method == method and each.goodput > mine.goodput * (1 + LOSS)}
        if better:
            found[choice.concurrency] = better | {choice.k}
    return found


def _choice(concurrency: int, off: Cell, mine: Sequence[Cell], cells: Sequence[Cell]) -> Choice:
    # As many comparisons with K 0 as there are K: each must be surer, so that all together are right.
    sure = NormalDist().inv_cdf(1 - _ALPHA / 2 / len(mine))
    shown = [each for each in mine if ratio(each, off, sure).low > 1]
    top = max(mine, key=lambda each: each.goodput)
    best = max(cells, key=lambda each: each.goodput)
    if not shown:
        gain = ratio(top, off, sure)
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
        return Choice(concurrency, OFF, 0, Interval(1.0, 1.0, 1.0), ratio(off, best, sure), reason)
    lead = max(shown, key=lambda each: each.goodput)
    chosen = min((each for each in shown if each.goodput >= lead.goodput * (1 - _TIE)), key=lambda each: each.k)
    gain = ratio(chosen, off, sure)
    reason = f"K {chosen.k} gives {_percent(gain.value)} ({_range(gain)})"
    if chosen is not lead:
        reason += f"; K {lead.k} is no better by more than {_TIE:.0%}"
    return Choice(concurrency, chosen.method, chosen.k, gain, ratio(chosen, best, sure), reason)


def _percent(gain: float) -> str:
    return f"{100 * (gain - 1):+.0f} % goodput" if math.isfinite(gain) else "goodput where K 0 has none"


def _range(gain: Interval) -> str:
    high = f"{100 * (gain.high - 1):+.0f} %" if math.isfinite(gain.high) and gain.high < 100 else "no bound"
    return f"{100 * (gain.low - 1):+.0f} % to {high}"
