"""Decision: whether a quantized model is as good as the original."""

from collections.abc import Iterator, Sequence

from launcher.quantize.gate import token_checks
from launcher.quantize.gate.compare import Difference, compare
from launcher.quantize.gate.scores import Scores
from launcher.quantize.gate.shape import Check, Figure, Judgement, Limits, Verdict
from launcher.quantize.gate.task_check import task_check

_NOTHING = Figure(0.0, 0.0, 0.0)
_WORST_FIRST = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)
_NOISE = 0.5
"""Share of the KL limit that the baseline may differ from itself."""


def judge(baseline: Scores, again: Scores, candidate: Scores, limits: Limits) -> Judgement:
    """Of ``candidate`` against ``baseline``, asked the same; ``again``: the baseline once more, maybe fewer records.

    With a labelled task that decides, and next-token figures only catch breakage; without, all of them must hold.
    Raises :class:`launcher.errors.QuantizeError` when the scores are not of the same records and items.
    """
    differences = compare(baseline, candidate)
    noise = token_checks.mean_kl(compare(baseline, again))
    checks, task = _token_checks(differences, limits, is_proxy=baseline.task is None), None
    if baseline.task is not None:
        check, task = task_check(baseline.task, candidate.task, limits)
        checks = [check, *checks]
    checks.sort(key=lambda check: _WORST_FIRST.index(check.verdict))
    obstacles = [*_obstacles(baseline, len(differences), noise, limits)]
    damage = [] if baseline.damage else [*_damage(candidate)]
    if damage:
        verdict = Verdict.FAIL
    elif obstacles:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = checks[0].verdict
    return Judgement(
        verdict=verdict,
        reasons=(*damage, *obstacles, *(check.reason for check in checks)),
        is_proxy=baseline.task is None,
        checks=tuple(checks),
        records=len(differences),
        positions=sum(each.positions for each in differences),
        noise=noise,
        nll_change=token_checks.nll_change(differences) if differences else _NOTHING,
        kl_of_records=tuple(each.kl / each.positions for each in differences),
        task=task,
    )


def _token_checks(differences: Sequence[Difference], limits: Limits, *, is_proxy: bool) -> list[Check]:
    if not differences:
        return []
    checks = [check(differences, limits, is_proxy=is_proxy) for check in (token_checks.kl, token_checks.agreement)]
    return [token_checks.accuracy(differences, limits), *checks] if is_proxy else checks


def _damage(candidate: Scores) -> Iterator[str]:
    if candidate.damage:
        yield (
            f"The quantized model is damaged: it gives no usable probabilities in {len(candidate.damage)} of "
            f"{_asked(candidate)} questions (first: {candidate.damage[0]})."
        )


def _obstacles(baseline: Scores, records: int, noise: float, limits: Limits) -> Iterator[str]:
    """Why nothing can be concluded, whatever the figures are."""
    if baseline.damage:
        yield (
            f"The original model itself gives no usable probabilities in {len(baseline.damage)} of {_asked(baseline)} "
            f"questions (first: {baseline.damage[0]}), so a comparison says nothing: check its files, and the engine."
        )
    if records < limits.records:
        yield (
            f"Only {records} held-out records could be compared, and fewer than {limits.records} say nothing of "
            "others: give more records."
        )
    if noise > _NOISE * limits.kl:
        yield (
            f"The original model, asked twice, differs from itself by {noise:.3f} nats (the limit for the quantized "
            f"one is {limits.kl:g}), so a comparison says nothing: the engine does not repeat itself on this device."
        )


def _asked(scores: Scores) -> int:
    return len(scores.records) + (len(scores.task.right) if scores.task else 0)
