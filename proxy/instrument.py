"""Shape: one metric, as Prometheus knows it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """As Prometheus knows it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Merge(StrEnum):
    """What a gauge is of several workers; counts and histograms are always their sums."""

    SUM = "sum"
    LEAST = "least"
    MOST = "most"

    def of(self, values: Iterable[float]) -> float:
        """Of the workers' values."""
        match self:
            case Merge.SUM:
                return sum(values)
            case Merge.LEAST:
                return min(values)
            case Merge.MOST:
                return max(values)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric."""

    name: str
    """Without ``_total``."""
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram."""
    merge: Merge = Merge.MOST
    """Of a gauge."""

    @property
    def shown(self) -> str:
        """Its name in ``/metrics``."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


def counter(name: str, labels: tuple[str, ...], meaning: str, unit: str = "requests") -> Instrument:
    return Instrument(name, Kind.COUNTER, unit, labels, meaning)


def seconds(name: str, labels: tuple[str, ...], buckets: tuple[float, ...], meaning: str) -> Instrument:
    return Instrument(name, Kind.HISTOGRAM, "seconds", labels, meaning, buckets)


def gauge(name: str, labels: tuple[str, ...], meaning: str, unit: str = "0 or 1", to: Merge = Merge.MOST) -> Instrument:
    return Instrument(name, Kind.GAUGE, unit, labels, meaning, merge=to)
