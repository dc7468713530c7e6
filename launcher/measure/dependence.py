"""Decision: how much values that follow each other tell, when each is like the one before.

Requests that are served at the same time are slow together, so that a thousand of them tell less than a thousand
independent ones. How much less is the integrated autocorrelation time: 1 for independent values, 20 when twenty
together tell as much as one. It is summed up over lags until those are five times as long (Sokal's window): what comes
later is noise.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

_WINDOW = 5
_FEW = 20
"""Fewer values say nothing of how they depend on each other; they are taken for independent."""
_LEAST = 4
"""Degrees of freedom below which the time itself is a guess."""


class Dependence(NamedTuple):
    """Of a series."""

    independent: float
    """As many independent values would tell as much."""
    freedom: float
    """Degrees of freedom of that estimate, for Student's t."""


def independent(count: int) -> Dependence:
    """What :func:`dependence` finds for so many values that have nothing to do with each other."""
    if count < _FEW:
        return Dependence(float(count), max(1.0, count - 1.0))
    return Dependence(count / (1 + (2 * _WINDOW + 1) / count), count / _WINDOW)


def dependence(values: "np.ndarray") -> Dependence | None:
    """``None``: the values depend on each other for so long that their spread cannot be told."""
    import numpy as np

    count = len(values)
    apart = values - values.mean()
    power = float(apart @ apart)
    if count < _FEW or power <= 0:
        return Dependence(float(count), max(1.0, count - 1.0))
    spectrum = np.fft.rfft(apart, 2 * count)
    correlations = np.fft.irfft(spectrum * np.conj(spectrum))[:count] / power
    times = 2 * np.cumsum(correlations) - 1
    window = next((lag for lag in range(1, count // 2) if lag >= _WINDOW * times[lag]), count)
    if count / window < _LEAST:
        return None
    # The mean that is subtracted is the series' own, which makes all correlations look smaller.
    time = max(1.0, float(times[window])) * (1 + (2 * window + 1) / count)
    return Dependence(count / time, count / window)
