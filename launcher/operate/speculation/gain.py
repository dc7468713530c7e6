"""Decision: how much faster tokens come with speculation than without, at the same load, and how sure that is."""

import math
from collections.abc import Sequence
from statistics import fmean, variance

from launcher.measure.interval import Interval

_CONFIDENCE = 0.95


def gain(differences: Sequence[float], unsure: float = 0.0) -> Interval | None:
    """From the windows' differences of log time by output token, without less with; as a share: 0.2 is 20 % more.

    ``unsure``: standard error that all of them share, of what they were compared with. ``None`` for fewer than two.
    Windows are taken for independent, and t's distribution for their mean's.
    """
    from scipy.special import stdtrit  # stats.t takes a hundred times as long

    count = len(differences)
    if count < 2:
        return None
    mean = fmean(differences)
    error = math.sqrt(variance(differences) / count + unsure**2)
    half = float(stdtrit(count - 1, (1 + _CONFIDENCE) / 2)) * error
    return Interval(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half))


def between(with_it: Sequence[float], without: Sequence[float]) -> Interval | None:
    """The same from windows of different times, of log times by output token: Welch's interval."""
    from scipy.special import stdtrit

    if len(with_it) < 2 or len(without) < 2:
        return None
    parts = [variance(each) / len(each) for each in (with_it, without)]
    mean, error = fmean(without) - fmean(with_it), math.sqrt(sum(parts))
    freedom = [part**2 / (len(each) - 1) for part, each in zip(parts, (with_it, without), strict=True)]
    half = float(stdtrit(sum(parts) ** 2 / sum(freedom), (1 + _CONFIDENCE) / 2)) * error if error else 0.0
    return Interval(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half))
