"""Shape: what the proxy and its engines had counted at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.health.readings import Readings
from proxy.overview.tally import Tally, Values
from proxy.topology import Role


@dataclass(frozen=True, slots=True)
class Engine:
    """What one engine told."""

    role: Role
    readings: Readings
    told_at: float
    """By the clock of the sample: engines are not asked when samples are taken."""


@dataclass(frozen=True, slots=True)
class Present:
    """Requests that are there now."""

    admitted: float = 0.0
    """Those that have a place."""
    waiting: float = 0.0
    """For a place."""
    in_flight: Mapping[str, float] | None = None
    """By instance."""


@dataclass(frozen=True, slots=True)
class Sample:
    """All of it, of all processes of the proxy; both times are seconds."""

    at: float
    """Since the epoch."""
    clock: float
    """Of a clock that never jumps."""
    counts: Tally
    present: Present
    engines: Mapping[str, Engine]
    """Those that have told something lately, by name."""

    def grown(self, before: "Sample", name: str) -> dict[Values, float]:
        """By how much each series of a counter has grown since.

        One that is smaller than before was begun anew: what it counts has come since. One that was not there before
        began at zero. One that is gone tells nothing.
        """
        past = before.counts.get(name, {})
        return {
            labels: count - old if count >= (old := past.get(labels, 0.0)) else count
            for labels, count in self.counts.get(name, {}).items()
        }
