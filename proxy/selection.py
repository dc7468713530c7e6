"""Decision: which of several instances takes the next request.

A policy gets at least one candidate and chooses one of them. The affinities keep their choice when other instances come
and go, and are bounded in load: an instance that has far more to do than the least busy one gives way to the next best.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from random import Random

from proxy.hint import NO_HINT, Hint
from proxy.pool import Member

Policy = Callable[[Sequence[Member], Hint], Member]

_FACTOR, _SPARE = 1.25, 2
"""A cache is worth waiting behind so many times what the least busy has in flight, and so many more. Against the mean,
as is usual, the last of four instances would stay idle until the others had 16 each: the mean does not see it."""
_WORTH = 0.5
"""A match of less than this share of the prompt is no reason: else all that share a system prompt would meet."""


def least_in_flight(candidates: Sequence[Member], hint: Hint = NO_HINT) -> Member:
    """The one with the fewest requests in flight; among equals the one whose turn is longest ago."""
    return min(candidates, key=burden)


def round_robin(candidates: Sequence[Member], hint: Hint) -> Member:
    """The one whose turn is longest ago."""
    return min(candidates, key=lambda member: member.last_turn)


def power_of_two(random: Random) -> Policy:
    """Of two drawn by lot the one with fewer in flight; processes that share nothing do not all run to the same one."""

    def choose(candidates: Sequence[Member], hint: Hint) -> Member:
        drawn = candidates if len(candidates) < 3 else random.sample(candidates, 2)
        return least_in_flight(drawn)

    return choose


def session_affinity(candidates: Sequence[Member], hint: Hint) -> Member:
    """The same for the same session, in every process, by rendezvous hashing; without a session as least in flight."""
    session = hint.session
    if session is None:
        return least_in_flight(candidates)
    return max(within_bounds(candidates), key=lambda member: _rendezvous(session, member.instance.name))


def prefix_affinity(candidates: Sequence[Member], hint: Hint) -> Member:
    """The one that remembers most of the prompt's beginning; among equals, and without a match, least in flight."""
    matches = [(member.load.prefixes.match(hint.blocks), member) for member in within_bounds(candidates)]
    longest = max(match for match, _ in matches)
    if longest < _WORTH * len(hint.blocks):
        return least_in_flight(candidates)
    return least_in_flight([member for match, member in matches if match == longest])


def ttft(objective: float, clock: Callable[[], float]) -> Policy:
    """The one that has to compute least among those expected to answer within ``objective`` seconds; else the first."""

    def choose(candidates: Sequence[Member], hint: Hint) -> Member:
        now = clock()

        def rank(member: Member) -> tuple[bool, float, float, int]:
            uncached = member.load.uncached(hint)
            expected = member.load.seconds(now, uncached)
            late = expected > objective
            return late, expected if late else uncached, expected, member.last_turn

        return min(candidates, key=rank)

    return choose


def within_bounds(candidates: Sequence[Member]) -> list[Member]:
    """Those that have not far more in flight than the least busy one."""
    bound = _FACTOR * min(member.in_flight for member in candidates) + _SPARE
    return [member for member in candidates if member.in_flight <= bound]


def burden(member: Member) -> tuple[int, int]:
    """The less of it, the sooner an instance is chosen: requests in flight; then, how long ago its turn was."""
    return member.in_flight, member.last_turn


def _rendezvous(session: str, name: str) -> bytes:
    return blake2b(f"{session}\0{name}".encode(errors="surrogatepass"), digest_size=8).digest()
