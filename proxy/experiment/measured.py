"""Decision: what one request says of its arm."""

import math
from enum import StrEnum

from proxy.errors import ShuttingDown
from proxy.experiment.sums import Cell
from proxy.record import Outcome, Record
from proxy.split import Experiment

_SHORTEST = 1e-6
"""Seconds; nothing is measured as no time at all, of which there is no logarithm."""


class Excluded(StrEnum):
    """Why a request says nothing of its arm."""

    FELL_BACK = "fell_back"
    """The arm's pool could not serve it: another one was asked."""
    REJECTED = "rejected"
    """It was wrong."""
    LEFT = "left"
    """The client left before anything could be told."""
    REFUSED = "refused"
    """The proxy had no room, or ends."""


def measured(record: Record, outcome: Outcome, now: float, experiment: Experiment) -> Cell | Excluded:
    """The sums of this one request, which ended at ``now``, by ``time.monotonic``."""
    if record.fell_back_from is not None:
        return Excluded.FELL_BACK
    if outcome is Outcome.REJECTED:
        return Excluded.REJECTED
    if outcome is Outcome.REFUSED or record.failure == ShuttingDown.__name__:
        return Excluded.REFUSED
    ttft, tpot = record.ttft, record.tpot(now) if outcome is Outcome.OK else None
    if outcome is Outcome.LEFT and ttft is None:
        if experiment.ttft is None or now - record.started <= experiment.ttft:
            return Excluded.LEFT
        return Cell(n=1, failed=1)  # it waited longer than it should have had to, and for nothing
    cell = Cell(n=1)
    if ttft is not None:
        cell.streamed, cell.ttft = 1, math.log(max(ttft, _SHORTEST))
        cell.ttft_squares = cell.ttft**2
    if tpot is not None:
        cell.paced, cell.tpot = 1, math.log(max(tpot, _SHORTEST))
        cell.tpot_squares = cell.tpot**2
    cell.failed = int(outcome in (Outcome.FAILED, Outcome.BROKEN_OFF))
    cell.good = int(not cell.failed and _meets(record, ttft, tpot, now, experiment))
    return cell


def _meets(record: Record, ttft: float | None, tpot: float | None, now: float, experiment: Experiment) -> bool:
    """Whether all objectives are met that were given and could be measured."""
    if ttft is None:
        return _meets_as_a_whole(record, now, experiment)
    return (experiment.ttft is None or ttft <= experiment.ttft) and (
        experiment.tpot is None or tpot is None or tpot <= experiment.tpot
    )


def _meets_as_a_whole(record: Record, now: float, experiment: Experiment) -> bool:
    """An answer that is not streamed has as long as the objectives give to all of its tokens."""
    if experiment.ttft is None or experiment.tpot is None or record.usage is None:
        return True
    return now - record.started <= experiment.ttft + experiment.tpot * max(0, record.usage.completion - 1)
