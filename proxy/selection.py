"""Decision: which of several instances takes the next request."""

from collections.abc import Iterable

from proxy.pool import Member


def least_in_flight(candidates: Iterable[Member]) -> Member | None:
    """The one with the fewest requests in flight; among equals the one whose turn is longest ago."""
    return min(candidates, key=lambda member: (member.in_flight, member.last_turn), default=None)
