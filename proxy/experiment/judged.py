"""Decision: what the sums of two arms show."""

import math
from collections.abc import Iterator

from proxy.experiment.answer import ArmSeen, Ending, ExperimentAnswer, MetricSeen
from proxy.experiment.sums import ArmSums, Sums
from proxy.sequential import ALPHA, Finding, Question, Verdict, judge
from proxy.split import Experiment, Split

_PRIMARY = 0.5
"""The part of the chance of a wrong answer that is goodput's; the other three share the rest."""
_TIMES = ("ttft", "tpot")


def questions(experiment: Experiment) -> dict[str, Question]:
    """By metric. Together they are wrong with the chance :data:`proxy.sequential.ALPHA` at most."""
    main, other = ALPHA * _PRIMARY, ALPHA * (1 - _PRIMARY) / 3
    longer = math.log1p(experiment.margin)
    return {
        "goodput": Question(experiment.margin, main, higher_is_better=True, is_share=True),
        "errors": Question(experiment.guards.errors, other, higher_is_better=False, is_share=True),
        "ttft": Question(longer, other, higher_is_better=False),
        "tpot": Question(longer, other, higher_is_better=False),
    }


def answer(split: Split, sums: Sums, ended: Ending | None, problem: str = "") -> ExperimentAnswer:
    """All that there is to say."""
    experiment = split.experiment
    if experiment is None:  # nothing is kept of what nobody compares
        return ExperimentAnswer(split, None, problem)
    arms = {arm: _seen(sums.get(arm, ArmSums())) for arm in _arms(split)}
    a, b = sums.get(experiment.a, ArmSums()), sums.get(experiment.b, ArmSums())
    metrics = tuple(_metric(name, a, b, question, experiment) for name, question in questions(experiment).items())
    verdict = metrics[0].verdict if ended is None else Verdict.WORSE
    return ExperimentAnswer(split, ended, problem, arms, metrics, verdict, tuple(_reasons(split, metrics, arms, ended)))


def _arms(split: Split) -> list[str]:
    return [*split.shares, *([] if split.shadow is None or split.shadow in split.shares else [split.shadow])]


def _seen(sums: ArmSums) -> ArmSeen:
    whole = sums.whole()
    return ArmSeen(
        whole.n, whole.failed, whole.good, len(sums.cells), dict(sums.excluded), sums.same, sums.same + sums.other
    )


def _metric(name: str, a: ArmSums, b: ArmSums, question: Question, experiment: Experiment) -> MetricSeen:
    found = judge(
        *(a.masses(name), b.masses(name), question),
        minimum_requests=experiment.minimum_requests,
        minimum_buckets=experiment.minimum_buckets,
    )
    return _in_its_unit(name, found)


def _in_its_unit(name: str, found: Finding) -> MetricSeen:
    values = [None if side is None else _exp(name, side.mean) for side in (found.a, found.b)]
    requests = tuple(0 if side is None else side.requests for side in (found.a, found.b))
    effect, low, high = (
        None if value is None else _exp(name, value) for value in (found.difference, found.low, found.high)
    )
    return MetricSeen(
        name, found.verdict, found.reason, values[0], values[1], (requests[0], requests[1]), effect, low, high
    )


def _exp(name: str, value: float) -> float:
    """Times are compared by their logarithms; an interval may be as wide as one likes."""
    return math.exp(min(value, 700.0)) if name in _TIMES else value


def _reasons(
    split: Split, metrics: tuple[MetricSeen, ...], arms: dict[str, ArmSeen], ended: Ending | None
) -> Iterator[str]:
    experiment = split.experiment
    assert experiment is not None
    if ended is not None:
        yield f"the guard of {ended.guard} has ended it: {ended.reason}"
    yield from (f"{seen.metric}: {seen.verdict}{_by(seen)}; {seen.reason}" for seen in metrics)
    if experiment.ttft is None and experiment.tpot is None:
        yield "goodput counts all requests that were answered, as no objective is given"
    elif experiment.tpot is not None and not any(seen.requests[1] for seen in metrics if seen.metric == "tpot"):
        yield (
            "no answer of B tells its tokens, so that nothing is known of tpot: streams do when clients send "
            "stream_options.include_usage"
        )
    copied = arms[experiment.b]
    if copied.compared_texts:
        yield f"{copied.same_texts} of {copied.compared_texts} copies without chance had the same text as the original"
    fell_back = arms[experiment.b].excluded.get("fell_back", 0)
    if fell_back:
        yield f"{fell_back} requests of {experiment.b} went to another pool, as it could not serve; they are left out"


def _by(seen: MetricSeen) -> str:
    """The effect with its interval, in words."""
    if seen.effect is None or seen.low is None or seen.high is None:
        return ""
    if seen.metric in _TIMES:
        return f", {seen.effect:.2f} times A's (between {seen.low:.2f} and {seen.high:.2f})"
    return f", {100 * seen.effect:+.1f} points (between {100 * seen.low:+.1f} and {100 * seen.high:+.1f})"
