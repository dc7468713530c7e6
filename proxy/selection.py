"""Decision: which of several instances takes the next request."""

from collections.abc import Iterable

from proxy.pool import Member


def load(member: Member) -> tuple[int, int]:
    """The less of it, the sooner an instance is chosen: requests in flight; among equals, how long ago its turn was."""
    return member.in_flight, member.last_turn


def least_in_flight(candidates: Iterable[Member]) -> Member | None:
    """The one with the fewest requests in flight; among equals the one whose turn is longest ago."""
    return min(candidates, key=load, default=None)
