"""Decision: counters by what the history tells apart, small enough to be written down every second."""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import Metric

from proxy import instruments as known

REQUESTS, TTFT, TPOT = known.REQUESTS.shown, f"{known.TTFT.name}_bucket", f"{known.TPOT.name}_bucket"
WANTED = (REQUESTS, TTFT, TPOT)
"""The samples that are looked at."""
_TOLD_APART = frozenset({"endpoint", "path", "outcome", "counted", "le"})

Labels = tuple[tuple[str, str], ...]
"""Pairs of name and value, sorted."""
Tally = Mapping[str, Mapping[Labels, float]]
"""Counts by name and labels."""
Written = Mapping[str, Sequence[tuple[Sequence[Sequence[str]], float]]]
"""The same as JSON has it."""


def tally(families: Iterable[Metric]) -> Tally:
    """Of all that is counted; what differs by other labels only is summed up."""
    found: dict[str, dict[Labels, float]] = {name: {} for name in WANTED}
    for family in families:
        for sample in family.samples:
            if (counts := found.get(sample.name)) is not None:
                labels = tuple(sorted(pair for pair in sample.labels.items() if pair[0] in _TOLD_APART))
                counts[labels] = counts.get(labels, 0.0) + sample.value
    return found


def merged(tallies: Iterable[Tally]) -> Tally:
    """Their sums."""
    found: dict[str, dict[Labels, float]] = {}
    for each in tallies:
        for name, counts in each.items():
            sums = found.setdefault(name, {})
            for labels, count in counts.items():
                sums[labels] = sums.get(labels, 0.0) + count
    return found


def written(given: Tally) -> Written:
    """For :func:`read`."""
    return {name: [(labels, count) for labels, count in counts.items()] for name, counts in given.items()}


def read(given: Written) -> Tally:
    """What :func:`written` has made."""
    return {
        name: {tuple((label, value) for label, value in labels): count for labels, count in counts}
        for name, counts in given.items()
    }
