"""Decision: choices at tested loads -> K for every number of running requests of one engine."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from launcher.speculation.evidence import Choice
from launcher.speculation.model import Model

Schedule = tuple[tuple[int, int, int], ...]
"""First and last number of running requests, and K."""
_USUAL_BATCH = 1024
"""Largest batch of an engine of which it is not known; the last K holds beyond the last range anyway."""


def batch_of(concurrency: int, engines: int) -> int:
    """Requests that one of so many engines runs, where they share the load evenly."""
    return math.ceil(concurrency / engines)


def schedule(choices: Sequence[Choice], engines: int, largest: int | None, model: Model | None) -> Schedule:
    """By the batch of one engine; empty where no load speculates.

    ``largest``: the engine's own limit, ``None`` where it is not known. Two loads that are the same batch take the
    smaller K. Between tested batches the model decides which neighbour's K to take, else it is the smaller one. Below
    the smallest tested batch its K holds, as the engine was there during the test, too. Above the largest it is 0.
    """
    tested = _by_batch(choices, engines)
    if not any(tested.values()):
        return ()
    batches = sorted(tested)
    ranges: list[tuple[int, int, int]] = [(1, batches[0], tested[batches[0]])]
    for below, above in pairwise(batches):
        last = _last(below, above, tested[below], tested[above], model)
        ranges += [(below + 1, last, tested[below]), (last + 1, above, tested[above])]
    end = largest or _USUAL_BATCH
    if end > batches[-1]:
        ranges.append((batches[-1] + 1, end, 0))
    return _joined([each for each in ranges if each[0] <= each[1]])


def k_at(of: Schedule, batch: int) -> int:
    """That a schedule says; the last range's beyond it, as the engine does; 0 where there is none."""
    found = 0
    for first, _, k in of:
        if batch >= first:
            found = k
    return found


def fixed(k: int) -> Schedule:
    """The same K at any load, 0 for none."""
    return ((1, _USUAL_BATCH, k),) if k else ()


def _by_batch(choices: Sequence[Choice], engines: int) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for each in choices:
        batch = batch_of(each.concurrency, engines)
        found[batch] = min(each.k, found.get(batch, each.k))
    return found


def _last(below: int, above: int, k_below: int, k_above: int, model: Model | None) -> int:
    """Largest batch at which the lower neighbour's K holds."""
    if k_below == k_above:
        return below
    if model is None or not model.is_good:
        return below if k_above < k_below else above - 1
    last = below
    while last + 1 < above and model.throughput(last + 1, k_below) > model.throughput(last + 1, k_above):
        last += 1
    return last


def _joined(ranges: Sequence[tuple[int, int, int]]) -> Schedule:
    found: list[tuple[int, int, int]] = []
    for first, last, k in ranges:
        if found and found[-1][2] == k:
            found[-1] = (found[-1][0], last, k)
        else:
            found.append((first, last, k))
    return tuple(found)
