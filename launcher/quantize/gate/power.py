"""Decision: how many items of a labelled task a verdict needs."""

import math

from launcher.quantize.gate.intervals import quantile, score

POWER = 0.8
_MOST = 10_000_000
_USUAL = 0.04
"""Share of answers that 8-bit weights change."""
_WEIGHT = 25
"""Items that this counts as much as."""


def needed(flips: int, items: int, loss: float, confidence: float) -> int:
    """Items with which a model that loses nothing passes in 80 of 100 cases, at the share of changed answers seen.

    ``loss``: the points that may be lost. Few items tell little of that share: the usual one is counted in.
    """
    share = (flips + _USUAL * _WEIGHT) / (items + _WEIGHT)
    low, high = 1, 64
    while high < _MOST and chance_to_pass(share, high, loss, confidence) < POWER:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if chance_to_pass(share, middle, loss, confidence) >= POWER else (middle + 1, high)
    return low


def chance_to_pass(flips: float, items: int, limit: float, confidence: float, true_loss: float = 0.0) -> float:
    """Probability that the bound of the loss lies below ``limit`` points, exactly; ``flips`` is a share.

    ``true_loss``, in points, is not more than the share of changed answers.
    """
    return _chance(flips, items, limit, confidence, true_loss)


def chance_to_fail(flips: float, items: int, limit: float, confidence: float, true_loss: float) -> float:
    """Probability that the loss is shown to be more than ``limit`` points."""
    return _chance(flips, items, -limit, confidence, -true_loss)


def _chance(flips: float, items: int, limit: float, confidence: float, true_loss: float) -> float:
    import numpy as np
    from scipy.stats import binom

    spread = 7 * math.sqrt(items * flips * (1 - flips)) + 7
    changed = np.arange(max(0, math.floor(items * flips - spread)), min(items, math.ceil(items * flips + spread)) + 1)
    # For each number of changed answers, the most among them that may be for the worse: found by halving.
    low, high = np.full(len(changed), -1), changed.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        passes = score(middle, changed - middle, items, limit / 100) < -quantile(confidence)
        low, high = np.where(passes, middle, low), np.where(passes, high, middle - 1)
    is_worse = 0.5 + true_loss / 200 / flips
    return float((binom.pmf(changed, items, flips) * binom.cdf(low, changed, is_worse)).sum())
