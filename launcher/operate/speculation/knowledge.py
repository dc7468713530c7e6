"""Decision: what is known of the time by output token without speculation, at any load.

From the evidence of a tuning, and from windows in which speculation was off. What was seen here is worth more: it is of
this machine, today.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev

_KEPT = 12
"""Windows at each load; older ones are forgotten."""
_ANOTHER_DAY = 0.05
"""Standard error that a figure of a tuning has at least: of log time, between one day and another."""
_ALIKE = math.log(1.5)
"""Loads that differ by less are one."""


@dataclass(frozen=True, slots=True)
class Level:
    """Log of the mean time by output token without speculation, at some load."""

    value: float
    error: float
    """Its standard error."""
    source: str
    """For people."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """By the load of one engine, in requests at once."""

    tuned: Mapping[float, tuple[float, float]] = field(default_factory=dict)
    """Of a tuning: log time by output token, and its standard error."""
    seen: tuple[tuple[float, float], ...] = ()
    """Windows: load, and log time by output token; the oldest first."""

    def plus(self, batch: float, tpot: float) -> "Knowledge":
        """With one more window in which speculation was off."""
        window = (max(batch, 1.0), math.log(tpot))
        alike = [each for each in self.seen if _alike(each[0], window[0])]
        forgotten = alike[: max(0, len(alike) + 1 - _KEPT)]
        return replace(self, seen=(*(each for each in self.seen if each not in forgotten), window))

    def at(self, batch: float) -> Level | None:
        """At this load; ``None`` when nothing is known of it."""
        batch = max(batch, 1.0)
        near = [value for load, value in self.seen if _alike(load, batch)]
        if len(near) >= 2:
            return Level(fmean(near), stdev(near) / math.sqrt(len(near)), f"{len(near)} windows without speculation")
        return _between(self.tuned, batch)


def _between(tuned: Mapping[float, tuple[float, float]], batch: float) -> Level | None:
    """A straight line between the loads on both sides, in logarithms; nothing beyond the outermost but a little."""
    loads = sorted(tuned)
    if not loads or not (_alike(batch, loads[0]) or _alike(batch, loads[-1]) or loads[0] < batch < loads[-1]):
        return None
    above = next((load for load in loads if load >= batch), loads[-1])
    below = next((load for load in reversed(loads) if load <= batch), loads[0])
    part = 0.0 if above == below else (math.log(batch) - math.log(below)) / (math.log(above) - math.log(below))
    (low, low_error), (high, high_error) = tuned[below], tuned[above]
    error = max(low_error, high_error, _ANOTHER_DAY)
    return Level(low + part * (high - low), error, "the evidence of the tuning")


def _alike(one: float, other: float) -> bool:
    return abs(math.log(one) - math.log(other)) < _ALIKE
