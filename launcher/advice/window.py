"""Decision: what happened at one instance between the first and the last look at its metrics."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from launcher.advice.metric_names import COUNTERS, GAUGES
from proxy.engine_instruments import PROCESS_START
from proxy.engine_samples import samples
from proxy.quantile import quantile as within

Labels = frozenset[tuple[str, str]]
Key = tuple[str, Labels]
"""Name of a sample and its labels."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at an instance's metrics: those of interest."""

    values: Mapping[Key, float]

    def sum(self, name: str, **labels: str) -> float | None:
        """Over all samples with these labels; ``None`` when there are none."""
        return total(self.values, name, labels)

    def most(self, name: str) -> float | None:
        """The largest of all samples: of the ranks of one instance."""
        return max((value for (each, _), value in self.values.items() if each == name), default=None)


def read(text: str) -> Reading:
    """From Prometheus's text, by today's names, without samples that no engine can mean.

    Raises :class:`ValueError` when it is none.
    """
    return Reading(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for sample in samples(text, _WANTED)
            if 0 <= sample.value < _NONSENSE and _is_bound(sample.labels.get("le", "0"))
        }
    )


_WANTED = GAUGES | COUNTERS | {PROCESS_START}
_NONSENSE = 1e18
"""Of tokens, requests, bytes and seconds nobody has so many."""


def _is_bound(text: str) -> bool:
    """Whether a bucket can have this bound; none of our metrics is below zero."""
    try:
        return float(text) >= 0
    except ValueError:
        return False


def total(values: Mapping[Key, float], name: str, labels: Mapping[str, str]) -> float | None:
    """The sum over all samples of a name with these labels; ``None`` when there are none."""
    wanted = labels.items()
    found = [value for (each, have), value in values.items() if each == name and wanted <= have]
    return sum(found) if found else None


@dataclass(slots=True)
class Window:
    """Follows one instance. Counters that begin again, as its process did, lose only what was counted between looks."""

    role: str
    grown: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    looks: list[Reading] = field(default_factory=list)
    restarts: int = 0
    missed: int = 0
    """Looks that were not answered."""

    def add(self, reading: Reading | None) -> None:
        """The next look; ``None`` when it was not answered."""
        if reading is None:
            self.missed += 1
            return
        if self.looks:
            before = self.looks[-1].values
            began_again = _began_again(before, reading.values)
            self.restarts += began_again
            for key, value in reading.values.items():
                if key[0] in COUNTERS:
                    self.grown[key] += value if began_again else value - before.get(key, 0.0)
        self.looks.append(reading)

    def increase(self, name: str, **labels: str) -> float | None:
        """Of a counter; ``None`` when the instance does not have it."""
        return total(self.grown, name, labels)

    def gauges(self, value: Callable[[Reading], float | None]) -> list[float]:
        """What each look told, of those that did."""
        return [found for look in self.looks if (found := value(look)) is not None]

    def mean(self, name: str) -> float | None:
        """Of a gauge over all looks."""
        found = self.gauges(lambda look: look.sum(name))
        return fmean(found) if found else None

    def buckets(self, histogram: str) -> dict[float, float]:
        """How many observations came up to each bound."""
        counts: dict[float, float] = defaultdict(float)
        for (name, labels), value in self.grown.items():
            bound = next((text for label, text in labels if label == "le"), None)
            if name == f"{histogram}_bucket" and bound is not None:
                counts[float(bound)] += value
        return dict(counts)


def _began_again(before: Mapping[Key, float], now: Mapping[Key, float]) -> bool:
    start = (PROCESS_START, frozenset[tuple[str, str]]())
    if before.get(start) != now.get(start):
        return True
    return any(key[0] in COUNTERS and value < before.get(key, 0.0) for key, value in now.items())


def quantile(share: float, parts: Iterable[Mapping[float, float]]) -> float | None:
    """Estimated from the buckets of several histograms, as Prometheus does: evenly spread within each bucket.

    Bounds that not all have are left out. Above the last finite bound it is that bound.
    """
    parts = [part for part in parts if part]
    if not parts:
        return None
    bounds = sorted(set.intersection(*(set(part) for part in parts)))
    counts = [sum(part[bound] for part in parts) for bound in bounds]
    if len(bounds) < 2 or bounds[-1] != math.inf:
        return None
    return within(share, dict(zip(bounds, counts, strict=True)))
