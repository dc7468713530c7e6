"""Decision: percentiles and means of latencies, with intervals that hold for requests that influence each other.

Requests that are served at the same time are slow together, so that many of them tell less than as many independent
ones would. How much less is estimated from groups of consecutive ones: their means spread more, the more they depend.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from launcher.measure.figures_shape import Distribution
from launcher.measure.interval import Interval

if TYPE_CHECKING:
    import numpy as np

PERCENTS = (50, 90, 95, 99)
_TAIL = 0.025
_GROUPS = (8, 20)
"""At least, else nothing can be said of how values depend on each other; and at most."""
_GROUP = 5
"""Members of a group at least."""


def distribution(values: Sequence[float]) -> Distribution:
    """Of latencies in the order in which their requests were sent."""
    return Distribution(len(values), mean(values), {percent: percentile(values, percent) for percent in PERCENTS})


def mean(values: Sequence[float]) -> Interval:
    """By Student's t; without bounds for fewer than two values, not a number for none."""
    import numpy as np

    if len(values) == 0:
        return Interval(math.nan, -math.inf, math.inf)
    array = np.asarray(values, dtype=float)
    value, count = float(array.mean()), len(array)
    if count < 2:
        return Interval(value, -math.inf, math.inf)
    far = max(_far(array), _far(np.array([part.mean() for part in _groups(array)])))
    return Interval(value, value - far, value + far)


def percentile(values: Sequence[float], percent: int) -> Interval | None:
    """By order statistics, so that no shape is assumed; ``None`` where there are too few values for both bounds."""
    import numpy as np
    from scipy import stats

    if len(values) == 0:
        return None
    array, share = np.asarray(values, dtype=float), percent / 100
    value = float(np.quantile(array, share))
    independent = round(_independent((array <= value).astype(float)))
    # Of so many independent values, how many lie below the true percentile is binomial; ranks are of these.
    low, high = (int(stats.binom.ppf(tail, independent, share)) for tail in (_TAIL, 1 - _TAIL))
    if low < 1 or high + 1 > independent:
        return None
    times, ordered = len(array) / independent, np.sort(array)
    first, last = max(1, math.floor(low * times)), min(len(array), math.ceil((high + 1) * times))
    return Interval(value, float(ordered[first - 1]), float(ordered[last - 1]))


def needed(percent: int) -> int:
    """Independent requests without which a percentile has no bounds."""
    share = percent / 100
    return math.ceil(math.log(_TAIL) / math.log(max(share, 1 - share)))


def _independent(values: "np.ndarray") -> float:
    """As many independent values would tell as much."""
    import numpy as np

    parts, spread = _groups(values), float(values.var(ddof=1)) if len(values) > 1 else 0.0
    if not parts or spread == 0:
        return float(len(values))
    times = float(np.var([part.mean() for part in parts], ddof=1)) * (len(values) / len(parts)) / spread
    return float(len(values) / max(1.0, times))


def _groups(values: "np.ndarray") -> "list[np.ndarray]":
    """Consecutive values; none where they are too few."""
    import numpy as np

    groups = min(_GROUPS[1], len(values) // _GROUP)
    return [*np.array_split(values, groups)] if groups >= _GROUPS[0] else []


def _far(values: "np.ndarray") -> float:
    """How far the true mean may be from that of these independent values; 0 for none."""
    from scipy import stats

    if (count := len(values)) < 2:
        return 0.0
    return float(stats.t.ppf(1 - _TAIL, count - 1) * values.std(ddof=1) / math.sqrt(count))
