"""Decision: how sure a measured share, difference or mean is."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from launcher.quantize.gate.shape import Figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

N = TypeVar("N", float, "NDArray[np.float64]")

_RESAMPLES = 2000
_HALF_STEP = 1.0
"""Items: of so many changed answers, one more for the worse is one less for the better. Without this correction the
score method is wrong in up to 8 of 100 cases instead of 5 when few answers change."""


def paired_loss(worse: int, better: int, items: int, confidence: float) -> Figure:
    """Points of 100 lost between two models asked the same, each bound one-sided of this confidence.

    Tango's score method for paired proportions (Statistics in Medicine 17, 1998), with a correction for continuity.
    ``worse`` and ``better``: items that only the first, or only the second model had right. It knows that no change
    seen in few items is no proof of none.
    """
    z = quantile(confidence)
    high = _root(lambda loss: score(float(worse), float(better), items, loss) + z)
    low = -_root(lambda loss: score(float(better), float(worse), items, loss) + z)
    return Figure(100 * (worse - better) / items, 100 * low, 100 * high)


def score(worse: N, better: N, items: int, loss: float) -> N:
    """Tango's statistic, corrected against who concludes that the loss is less than ``loss``; that is a share.

    Below minus the normal quantile it is shown to be less. Takes NumPy's arrays as well.
    """
    b = (2 * items - worse + better) * loss - worse - better
    root = abs(b * b + 8 * items * better * loss * (1 - loss)) ** 0.5
    better_share = (root - b) / (4 * items)
    spread = items * (2 * better_share + loss * (1 - loss))
    found: N = (worse - better - items * loss + _HALF_STEP) / (spread + 1e-12) ** 0.5
    return found


def share_low(hits: int, of: int, confidence: float) -> float:
    """Wilson's one-sided lower bound of a share."""
    z = quantile(confidence)
    share = hits / of
    middle = share + z * z / (2 * of)
    return float((middle - z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))) / (1 + z * z / of))


def ratio(sums: Sequence[float], counts: Sequence[int], confidence: float) -> Figure:
    """The mean of all positions, from each record's sum and count; each bound one-sided of this confidence.

    Bootstrap-t over whole records, as positions of one record depend on each other. The same input gives the same
    figure. One record tells nothing of others: its bounds are infinite.
    """
    import numpy as np

    s, n = np.asarray(sums, dtype=float), np.asarray(counts, dtype=float)
    value = float(s.sum() / n.sum())
    if len(s) < 2:
        return Figure(value, -math.inf, math.inf)
    if np.allclose(s, value * n, rtol=1e-12, atol=1e-12):
        return Figure(value, value, value)

    def error(s: "np.ndarray", n: "np.ndarray") -> "np.ndarray":
        rest = s - (s.sum(axis=-1) / n.sum(axis=-1))[..., None] * n
        return np.asarray(np.sqrt(len(sums) / (len(sums) - 1) * (rest**2).sum(axis=-1)) / n.sum(axis=-1))

    drawn = np.random.default_rng(0).integers(0, len(s), (_RESAMPLES, len(s)))
    means, errors = s[drawn].sum(axis=1) / n[drawn].sum(axis=1), error(s[drawn], n[drawn])
    own = float(error(s, n))
    # A resample without any spread, as rare events make them, says nothing of how far off it is in its own terms.
    far = (means - value) / np.where(errors > own * 1e-3, errors, own)
    low, high = np.quantile(far, [1 - confidence, confidence])
    return Figure(value, value - float(high) * own, value - float(low) * own)


def resampled(statistic: Callable[..., object], samples: Sequence[Sequence[float]], confidence: float) -> Figure:
    """A statistic of samples whose members belong together, with its two-sided percentile interval.

    ``statistic`` takes one array for each sample and the axis along which to work.
    """
    import numpy as np

    arrays = [np.asarray(each, dtype=float) for each in samples]
    drawn = np.random.default_rng(0).integers(0, len(arrays[0]), (_RESAMPLES, len(arrays[0])))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.asarray(statistic(*(each[drawn] for each in arrays), axis=1)), [tail, 1 - tail])
    value = np.asarray(statistic(*(each[None] for each in arrays), axis=1))[0]
    return Figure(float(value), float(low), float(high))


def quantile(confidence: float) -> float:
    """Of the normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(confidence)


def _root(rising_to: Callable[[float], float]) -> float:
    """Where a falling function of a loss becomes negative."""
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising_to(middle) > 0 else (low, middle)
    return high
