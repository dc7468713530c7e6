"""Decision: how much faster tokens come with speculation than without, at the same load, and how sure that is."""

import math
from collections.abc import Sequence
from statistics import fmean

from launcher.measure.interval import Interval

_CONFIDENCE = 0.95


def gain(differences: Sequence[float], unsure: float = 0.0) -> Interval | None:
    """From the windows' differences of log time by output token, without less with; as a share: 0.2 is 20 % more.

    ``unsure``: standard error that all of them share, of what they were compared with. ``None`` for fewer than two.
    Windows are taken for independent, and t's distribution for their mean's.
    """
    from scipy.stats import t

    count = len(differences)
    if count < 2:
        return None
    mean = fmean(differences)
    variance = sum((each - mean) ** 2 for each in differences) / (count - 1)
    half = float(t.ppf((1 + _CONFIDENCE) / 2, count - 1)) * math.sqrt(variance / count + unsure**2)
    return Interval(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half))


def between(with_it: Sequence[float], without: Sequence[float]) -> Interval | None:
    """The same from windows of different times, of log times by output token: Welch's interval."""
    from scipy.stats import ttest_ind

    if len(with_it) < 2 or len(without) < 2:
        return None
    bounds = ttest_ind(without, with_it, equal_var=False).confidence_interval(_CONFIDENCE)
    value = math.expm1(fmean(without) - fmean(with_it))
    low, high = float(bounds.low), float(bounds.high)
    if math.isnan(low):  # no spread at all
        return Interval(value, value, value)
    return Interval(value, math.expm1(low), math.expm1(high))
