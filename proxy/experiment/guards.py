"""Decision: whether an experiment has to end at once.

Two looks: at all since it began, by the statistics that hold at any time, which needs many sessions to be sure; and
at what came just now, by round limits, so that an arm that breaks down after a good week, or that serves a single
large client, is seen within a minute.
"""

import math
import time

from proxy.experiment.answer import Ending
from proxy.experiment.sums import ArmSums, Cell
from proxy.sequential import ALPHA, Question, judge
from proxy.split import Experiment

RECENT = 60.0
"""Seconds that are just now."""
_FEW_REQUESTS = 20
_FEW_BUCKETS = 8
"""Less than for a verdict: a guard that is wrong costs an experiment, one that is late costs clients."""
_HALF = 0.5
"""Of the requests just now."""
_MANY = 50


def guard(a: ArmSums, b: ArmSums, recent_a: Cell, recent_b: Cell, experiment: Experiment) -> Ending | None:
    """Why to end it, if so. Requests that B's pool could not serve count as failed by it; the recent ones hold them."""
    reason = _errors(a, b, recent_a, recent_b, experiment)
    if reason is not None:
        return Ending("errors", reason, time.time())
    reason = _ttft(a, b, recent_a, recent_b, experiment)
    return None if reason is None else Ending("ttft", reason, time.time())


def _errors(a: ArmSums, b: ArmSums, recent_a: Cell, recent_b: Cell, experiment: Experiment) -> str | None:
    limit = experiment.guards.errors
    question = Question(limit, ALPHA, higher_is_better=False, is_share=True)
    low = _low(a, b, "errors", question)
    if low is not None and low > limit:
        return (
            f"of {experiment.b}'s requests {_share(b.whole()):.1%} fail, of {experiment.a}'s {_share(a.whole()):.1%}: "
            f"surely more than {limit:.1%} of all requests apart"
        )
    if recent_b.n >= _FEW_REQUESTS and _share(recent_b) >= _HALF and _share(recent_a) < _HALF * _share(recent_b):
        return (
            f"{recent_b.failed} of the last {recent_b.n} requests of {experiment.b} failed, and "
            f"{recent_a.failed} of {recent_a.n} of {experiment.a}"
        )
    return None


def _ttft(a: ArmSums, b: ArmSums, recent_a: Cell, recent_b: Cell, experiment: Experiment) -> str | None:
    limit = math.log(experiment.guards.ttft)
    low = _low(a, b, "ttft", Question(limit, ALPHA, higher_is_better=False))
    if low is not None and low > limit:
        return f"{experiment.b}'s is surely more than {experiment.guards.ttft:g} times {experiment.a}'s"
    if min(recent_a.streamed, recent_b.streamed) < _MANY:
        return None
    longer = recent_b.ttft / recent_b.streamed - recent_a.ttft / recent_a.streamed
    if longer > 2 * limit:
        return f"{experiment.b}'s was {math.exp(longer):.1f} times {experiment.a}'s within the last {RECENT:.0f} s"
    return None


def _low(a: ArmSums, b: ArmSums, metric: str, question: Question) -> float | None:
    """The lower end of the interval of B's excess."""
    found = judge(
        a.masses(metric), b.masses(metric), question, minimum_requests=_FEW_REQUESTS, minimum_buckets=_FEW_BUCKETS
    )
    return found.low


def _share(cell: Cell) -> float:
    return cell.failed / cell.n if cell.n else 0.0
