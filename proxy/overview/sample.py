"""Shape: what the proxy and its engines had counted at one moment."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric

from proxy.health.readings import Readings
from proxy.topology import Role

Labels = tuple[tuple[str, str], ...]
"""Pairs of name and value, sorted."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What one engine told."""

    role: Role
    readings: Readings


@dataclass(frozen=True, slots=True)
class Sample:
    """All of it; both times are seconds."""

    at: float
    """Since the epoch."""
    clock: float
    """Of a clock that never jumps."""
    values: Mapping[str, Mapping[Labels, float]]
    """Of the proxy's own metrics, by name and labels."""
    engines: Mapping[str, Engine]
    """Those that have told something lately, by name."""

    def total(self, name: str) -> float | None:
        """The sum of a metric's samples; ``None`` when there is none."""
        found = self.values.get(name)
        return sum(found.values()) if found else None

    def grown(self, before: "Sample", name: str) -> dict[Labels, float]:
        """By how much each series of a counter has grown since.

        One that is smaller than before was begun anew: what it counts has come since. One that was not there before
        began at zero. One that is gone tells nothing.
        """
        past = before.values.get(name, {})
        return {
            labels: value - old if value >= (old := past.get(labels, 0.0)) else value
            for labels, value in self.values.get(name, {}).items()
        }


def take(families: Iterable[Metric], wanted: Collection[str], engines: Mapping[str, Engine]) -> Sample:
    """Now; of the families' samples only those with a name that is wanted."""
    values: dict[str, dict[Labels, float]] = {}
    for family in families:
        for sample in family.samples:
            if sample.name in wanted:
                values.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return Sample(time.time(), time.monotonic(), values, engines)
