"""Decision: what a labelled task says of a quantized model."""

from launcher.errors import QuantizeError
from launcher.quantize.gate.intervals import paired_loss, share_low
from launcher.quantize.gate.power import needed
from launcher.quantize.gate.scores import TaskScores
from launcher.quantize.gate.shape import Check, Figure, Limits, TaskResult, Verdict


def task_check(baseline: TaskScores, candidate: TaskScores | None, limits: Limits) -> tuple[Check, TaskResult]:
    """How much of the task's accuracy is lost; the same items were asked of both.

    Raises :class:`QuantizeError` when they were not.
    """
    if candidate is None or len(candidate.right) != len(baseline.right):
        raise QuantizeError("the two models were asked other items of the task: remove the kept scores, and ask anew")
    items = len(baseline.right)
    worse = sum(a and not b for a, b in zip(baseline.right, candidate.right, strict=True))
    better = sum(b and not a for a, b in zip(baseline.right, candidate.right, strict=True))
    result = TaskResult(
        items=items,
        baseline=sum(baseline.right) / max(1, items),
        candidate=sum(candidate.right) / max(1, items),
        worse=worse,
        better=better,
        needed=needed(worse + better, items, limits.loss, limits.confidence),
    )
    if items == 0:
        nothing = Figure(0.0, -100.0, 100.0)
        return _check(nothing, limits, Verdict.INCONCLUSIVE, "The labelled task has no items."), result
    figure = paired_loss(worse, better, items, limits.confidence)
    if fault := _floor(baseline, result, limits):
        return _check(figure, limits, Verdict.INCONCLUSIVE, fault), result
    verdict = Verdict.PASS if figure.high < limits.loss else Verdict.INCONCLUSIVE
    if figure.low > limits.loss:
        verdict = Verdict.FAIL
    return _check(
        figure, limits, verdict, f"{_what(result, figure)} {_follows(figure, result, limits, verdict)}"
    ), result


def _check(figure: Figure, limits: Limits, verdict: Verdict, reason: str) -> Check:
    return Check("task accuracy", figure, limits.loss, "points", verdict, reason)


def _floor(baseline: TaskScores, result: TaskResult, limits: Limits) -> str:
    """Why the baseline's own accuracy allows no comparison; empty if it does."""
    said = f"The original model itself has {100 * result.baseline:.1f} % of {result.items:,} items right"
    fix = (
        "so a comparison says nothing: are there too few items, are they too hard for this model, or do they not have "
        "the format of its chat template?"
    )
    if baseline.chance and share_low(sum(baseline.right), result.items, limits.confidence) <= baseline.chance:
        return f"{said}, which is not clearly more than guessing ({100 * baseline.chance:.1f} %), {fix}"
    if result.baseline < limits.floor:
        return f"{said} (at least {100 * limits.floor:g} % is asked for), {fix}"
    return ""


def _what(result: TaskResult, figure: Figure) -> str:
    how = "a loss" if figure.value >= 0 else "a gain"
    return (
        f"Of {result.items:,} labelled items the original has {100 * result.baseline:.1f} % right and the quantized "
        f"model {100 * result.candidate:.1f} %, {how} of {abs(figure.value):.2f} points ({result.worse} became wrong, "
        f"{result.better} became right);"
    )


def _follows(figure: Figure, result: TaskResult, limits: Limits, verdict: Verdict) -> str:
    surely = f"with {100 * limits.confidence:g} % confidence"
    match verdict:
        case Verdict.PASS:
            return f"{surely} the loss is below {figure.high:.2f} points (limit {limits.loss:g})."
        case Verdict.FAIL:
            return f"{surely} the loss is above {figure.low:.2f} points (limit {limits.loss:g})."
        case Verdict.INCONCLUSIVE:
            more = (
                f"about {result.needed:,} items would show it if nothing is lost"
                if result.items < result.needed
                else "the loss is too close to the limit for so many items"
            )
            return f"it may be anything from {figure.low:.2f} to {figure.high:.2f} (limit {limits.loss:g}): {more}."
