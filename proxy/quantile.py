"""Contract decision: quantiles of a histogram, as Prometheus estimates them."""

import math
from collections.abc import Mapping


def quantile(share: float, counts: Mapping[float, float]) -> float | None:
    """The value below which that share lies, evenly spread within its bucket; ``None`` of nothing.

    What lies above all finite bounds is told as the greatest of these.
    """
    bounds = sorted(counts)
    total = counts[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank, low, below = share * total, 0.0, 0.0
    for bound in bounds:
        count = counts[bound]
        if count >= rank and count > below:
            return low if math.isinf(bound) else low + (bound - low) * (rank - below) / (count - below)
        if not math.isinf(bound):
            low, below = bound, count
    return low
