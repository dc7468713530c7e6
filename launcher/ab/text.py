"""Decision: what an experiment shows, for people."""

from collections.abc import Iterator

from rich.table import Table

from launcher.tables import new_table
from proxy.experiment.answer import ExperimentAnswer, MetricSeen
from proxy.sequential import Verdict
from proxy.split import Split

_NAMES = {"goodput": "goodput", "errors": "errors", "ttft": "TTFT", "tpot": "time per token"}
_TIMES = ("ttft", "tpot")


def headline(split: Split) -> str:
    """What is compared, in a sentence."""
    experiment = split.experiment
    if experiment is None:
        return f"{split.id} divides the requests: {_shares(split)}; it is no experiment"
    goals = [
        f"{name} within {seconds:g} s"
        for name, seconds in (("the first token", experiment.ttft), ("each further one", experiment.tpot))
        if seconds is not None
    ]
    good = f"answered, {' and '.join(goals)}" if goals else "answered; no objective is given"
    if split.shadow is not None:
        how = f"copies of {split.shadow_percent:g} % of the {split.by}s go to {split.shadow}"
    else:
        how = f"{_shares(split)} by {split.by}"
    return f"{split.id} compares {experiment.b} (B) with {experiment.a} (A): {how}; good is what was {good}"


def _shares(split: Split) -> str:
    return ", ".join(f"{arm} {share:g} %" for arm, share in split.shares.items())


def arms(answer: ExperimentAnswer) -> Table:
    """How much there is."""
    table = new_table("ARM", "REQUESTS", "GOOD", "FAILED", "BUCKETS", "LEFT OUT")
    for name, arm in answer.arms.items():
        left_out = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in arm.excluded.items())
        table.add_row(name, *(f"{n:,}" for n in (arm.requests, arm.good, arm.failed, arm.buckets)), left_out or "-")
    return table


def metrics(answer: ExperimentAnswer) -> Table:
    """What it shows; TTFT always stands next to the time per token."""
    table = new_table("METRIC", "A", "B", "B AGAINST A", "INTERVAL", "VERDICT")
    for seen in answer.metrics:
        values = _value(seen, seen.a), _value(seen, seen.b)
        table.add_row(_NAMES[seen.metric], *values, _effect(seen), _interval(seen), seen.verdict)
    return table


def lines(answer: ExperimentAnswer) -> Iterator[str]:
    """The verdict and its reasons."""
    if answer.problem:
        yield f"warning: {answer.problem}"
    if answer.split is None or answer.split.experiment is None:
        return
    yield f"{answer.split.experiment.b} is: {answer.verdict}"
    yield from (f"- {reason}" for reason in answer.reasons)


def promotion(answer: ExperimentAnswer) -> Iterator[str]:
    """How B gets all requests for good."""
    experiment = None if answer.split is None else answer.split.experiment
    if experiment is None:
        return
    if answer.verdict is not Verdict.BETTER:
        yield f"warning: it was not shown that {experiment.b} is better: {answer.verdict}"
    yield f"To let {experiment.b} serve what {experiment.a} served, end proxy.pools.rules of the profile with:"
    yield f"  - {{pool: {experiment.b}}}"
    yield "It takes effect with the next `launcher up`; to be rid of the other pool, make B's part the profile itself."


def _value(seen: MetricSeen, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{1000 * value:,.1f} ms" if seen.metric in _TIMES else f"{value:.1%}"


def _effect(seen: MetricSeen) -> str:
    if seen.effect is None:
        return "-"
    return f"x {seen.effect:.2f}" if seen.metric in _TIMES else f"{100 * seen.effect:+.1f} points"


def _interval(seen: MetricSeen) -> str:
    """That holds at all looks together."""
    if seen.low is None or seen.high is None:
        return "-"
    if seen.metric in _TIMES:
        return f"{seen.low:.2f} to {seen.high:.2f}"
    return f"{100 * seen.low:+.1f} to {100 * seen.high:+.1f}"
