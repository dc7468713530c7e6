"""Decision: counters by what the history tells apart, small enough to be written down every second."""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import Metric

from proxy import instruments as known

REQUESTS, TTFT, TPOT = known.REQUESTS.shown, f"{known.TTFT.name}_bucket", f"{known.TPOT.name}_bucket"
LABELS: Mapping[str, tuple[str, ...]] = {
    REQUESTS: ("endpoint", "path", "outcome"),
    TTFT: ("le",),
    TPOT: ("counted", "le"),
}
"""The samples that are looked at, and by which of their labels they are told apart."""

Values = tuple[str, ...]
"""Of these labels."""
Tally = Mapping[str, Mapping[Values, float]]
"""Counts by name and labels."""
Written = Mapping[str, Sequence[tuple[Sequence[str], float]]]
"""The same as JSON has it."""


def tally(families: Iterable[Metric]) -> Tally:
    """Of all that is counted; what differs by other labels only is summed up."""
    found: dict[str, dict[Values, float]] = {name: {} for name in LABELS}
    for family in families:
        for sample in family.samples:
            if (counts := found.get(sample.name)) is not None:
                values = tuple([sample.labels[label] for label in LABELS[sample.name]])
                counts[values] = counts.get(values, 0.0) + sample.value
    return found


def merged(tallies: Iterable[Tally]) -> Tally:
    """Their sums."""
    found: dict[str, dict[Values, float]] = {}
    for each in tallies:
        for name, counts in each.items():
            sums = found.setdefault(name, {})
            for values, count in counts.items():
                sums[values] = sums.get(values, 0.0) + count
    return found


def written(given: Tally) -> Written:
    """For :func:`read`."""
    return {name: [*counts.items()] for name, counts in given.items()}


def read(given: Written) -> Tally:
    """What :func:`written` has made."""
    return {name: {tuple(values): count for values, count in counts} for name, counts in given.items()}
