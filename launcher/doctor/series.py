"""Decision: what a page of metrics says now, and what was counted between two looks at it."""

import math
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


def read(text: str) -> tuple[Sample, ...]:
    """All samples of a page that are finite; raises :class:`ValueError` when it is not in Prometheus's format."""
    families = text_string_to_metric_families(text)
    samples = (sample for family in families for sample in family.samples)
    return tuple((each.name, each.labels, each.value) for each in samples if math.isfinite(each.value))


@dataclass(frozen=True)
class Series:
    """One page at one time or two. Without a ``first`` look everything was counted since its process was started."""

    last: tuple[Sample, ...] = ()
    first: tuple[Sample, ...] = ()
    _before: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        before = {(name, frozenset(labels.items())): value for name, labels, value in self.first}
        object.__setattr__(self, "_before", before)

    def of(self, **labels: str) -> "Series":
        """That part which has these labels."""
        wanted = labels.items()
        last, first = ([each for each in page if wanted <= each[1].items()] for page in (self.last, self.first))
        return Series(tuple(last), tuple(first))

    def now(self, name: str, **labels: str) -> float | None:
        """The sum of a gauge; ``None`` when there is none."""
        found = [value for _, value in self._now(name, labels)]
        return sum(found) if found else None

    def most(self, name: str, **labels: str) -> float | None:
        """The largest of a gauge's; ``None`` when there is none."""
        return max((value for _, value in self._now(name, labels)), default=None)

    def by(self, name: str, *by: str, **labels: str) -> dict[tuple[str, ...], float]:
        """A gauge's sums for each combination of values of these labels."""
        sums: dict[tuple[str, ...], float] = defaultdict(float)
        for have, value in self._now(name, labels):
            sums[tuple(have.get(label, "") for label in by)] += value
        return dict(sums)

    def counted(self, name: str, **labels: str) -> float:
        """How much a counter has grown; one that has begun again has been counted since."""
        return sum(value for _, value in self._counted(name, labels))

    def counted_by(self, name: str, *by: str, **labels: str) -> dict[tuple[str, ...], float]:
        """The same for each combination of values of these labels, where it is not nothing."""
        sums: dict[tuple[str, ...], float] = defaultdict(float)
        for have, value in self._counted(name, labels):
            if value:
                sums[tuple(have.get(label, "") for label in by)] += value
        return dict(sums)

    def buckets(self, histogram: str, **labels: str) -> dict[float, float]:
        """How many observations came up to each bound; an engine's samples without a bound are left out."""
        counts: dict[float, float] = defaultdict(float)
        for have, value in self._counted(f"{histogram}_bucket", labels):
            with suppress(KeyError, ValueError):
                counts[float(have["le"])] += value
        return dict(counts)

    def _now(self, name: str, labels: Mapping[str, str]) -> list[tuple[Labels, float]]:
        wanted = labels.items()
        return [(have, value) for each, have, value in self.last if each == name and wanted <= have.items()]

    def _counted(self, name: str, labels: Mapping[str, str]) -> list[tuple[Labels, float]]:
        grown = []
        for have, value in self._now(name, labels):
            before = self._before.get((name, frozenset(have.items())), 0.0)
            grown.append((have, value - before if value >= before else value))
        return grown
