"""Shape: counters and gauges at one moment, by name and labels."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric

Labels = tuple[tuple[str, str], ...]
"""Pairs of name and value, sorted."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What metrics were worth; both times are seconds."""

    at: float
    """Since the epoch."""
    clock: float
    """Of a clock that never jumps."""
    values: Mapping[str, Mapping[Labels, float]]

    def total(self, name: str) -> float | None:
        """The sum of a metric's samples; ``None`` when there is none."""
        found = self.values.get(name)
        return sum(found.values()) if found else None

    def most(self, name: str) -> float | None:
        """The greatest of them."""
        found = self.values.get(name)
        return max(found.values()) if found else None

    def grown(self, before: "Sample", name: str, *, from_zero: bool) -> dict[Labels, float]:
        """By how much each series of a counter has grown since.

        One that is smaller than before was begun anew: what it counts has come since. One that was not there before has
        grown by all it counts when it is known to have begun at zero, and else by nobody knows what. One that is gone
        tells nothing.
        """
        past, found = before.values.get(name, {}), {}
        for labels, value in self.values.get(name, {}).items():
            old = past.get(labels, 0.0 if from_zero else None)
            if old is not None:
                found[labels] = value - old if value >= old else value
        return found


def take(families: Iterable[Metric], wanted: Collection[str]) -> Sample:
    """Now; of the samples only those with a name that is wanted."""
    values: dict[str, dict[Labels, float]] = {}
    for family in families:
        for sample in family.samples:
            if sample.name in wanted:
                values.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return Sample(time.time(), time.monotonic(), values)
