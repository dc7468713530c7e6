"""Decision: the buckets of a tally."""

from collections.abc import Mapping

from proxy.overview.tally import Values


def by_bound(buckets: Mapping[Values, float]) -> dict[float, float]:
    """Counts up to each upper bound, which is the last label, whatever the others are."""
    found: dict[float, float] = {}
    for labels, count in buckets.items():
        bound = float(labels[-1])
        found[bound] = found.get(bound, 0.0) + count
    return found
