"""Decision: what the written schedule really gives -> keep it, or correct it.

A schedule is more than its parts: an engine that changes K between batches may lose more than either K does, and one
that is set up to speculate may be slower at K 0 than one that is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.measure.interval import Interval
from launcher.speculation.choice import LOSS, OFF
from launcher.speculation.evidence import Choice, Point
from launcher.speculation.pooling import pooled
from launcher.speculation.ratios import goodput_ratio
from launcher.speculation.setting import OFF as OFF_SETTING
from launcher.speculation.setting import Setting, Visit


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The schedule at one load."""

    concurrency: int
    of_off: Interval
    """Goodput over that of K 0."""
    of_fixed: Interval
    """Goodput over that of the best fixed K."""

    @property
    def is_below(self) -> bool:
        """Whether it seems to break the promise."""
        return self.of_off.value < 1 - LOSS

    @property
    def is_shown(self) -> bool:
        """Whether that it is below K 0 is more than chance."""
        return self.of_off.high < 1


def confirmed(
    visits: Sequence[Visit], scheduled: Setting, fixed: Setting, weights: Mapping[float, float]
) -> tuple[Confirmed, ...]:
    """By load, from the visits of one confirmation."""
    loads = sorted({each.point.concurrency for each in visits})

    def of(setting: Setting, load: int) -> tuple[Point, ...]:
        mine = (each for each in visits if each.setting == setting.name)
        return pooled([each.point for each in mine if each.point.concurrency == load])

    return tuple(
        Confirmed(
            load,
            goodput_ratio(of(scheduled, load), of(OFF_SETTING, load), weights),
            goodput_ratio(of(scheduled, load), of(fixed, load), weights),
        )
        for load in loads
    )


def told(choices: Sequence[Choice], found: Sequence[Confirmed]) -> tuple[Choice, ...]:
    """The choices with what was confirmed in place of what was expected."""
    by_load = {each.concurrency: each for each in found}
    return tuple(
        replace(
            each,
            gain=by_load[each.concurrency].of_off,
            of_best=by_load[each.concurrency].of_fixed,
            reason=f"{each.reason}; the schedule itself gave {by_load[each.concurrency].of_off.value:.2f} x K 0's "
            f"goodput and {by_load[each.concurrency].of_fixed.value:.2f} x that of the best fixed K",
        )
        if each.concurrency in by_load
        else each
        for each in choices
    )


def corrected(
    choices: Sequence[Choice], found: Sequence[Confirmed], points: Sequence[Point], weights: Mapping[float, float]
) -> tuple[Choice, ...] | None:
    """Other choices where the schedule fell short; ``None`` when it did nowhere.

    A K that falls short becomes 0. Where K is 0 and still slower than no speculation at all, the K of the load below is
    taken if that one by itself was not slower here, so that nothing changes between the two; else nothing is drafted
    at any load, since the engine cannot be both.
    """
    short = {each.concurrency: each for each in found if each.is_below}
    if not short:
        return None
    kept: list[Choice] = []
    for each in choices:
        if each.concurrency not in short:
            kept.append(each)
            continue
        lost = f"the schedule gave only {short[each.concurrency].of_off.value:.2f} x K 0's goodput here"
        if each.k:
            kept.append(_off(each, lost))
            continue
        below = kept[-1] if kept and kept[-1].k else None
        if below is None or _alone(points, below, each.concurrency, weights) < 1 - LOSS:
            reason = f"at {each.concurrency} at once {lost}, although K is 0 there"
            return tuple(_off(one, reason) for one in choices)
        kept.append(replace(each, method=below.method, k=below.k, reason=f"{lost} with K 0; so K stays {below.k}"))
    return tuple(kept)


def _off(choice: Choice, reason: str) -> Choice:
    one = Interval(1.0, 1.0, 1.0)
    return replace(choice, method=OFF, k=0, gain=one, reason=f"do not speculate: {reason}" if reason else choice.reason)


def _alone(points: Sequence[Point], other: Choice, load: int, weights: Mapping[float, float]) -> float:
    """Goodput of another load's K at this one, over that of K 0."""
    here = [each for each in points if each.concurrency == load]
    fixed = [each for each in here if each.method == other.method and each.k == other.k]
    off = [each for each in here if each.k == 0]
    return goodput_ratio(fixed, off, weights).value if fixed and off else 0.0
