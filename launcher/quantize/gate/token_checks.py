"""Decision: what next-token figures say of a quantized model."""

from collections.abc import Sequence

from launcher.quantize.gate.compare import Difference
from launcher.quantize.gate.intervals import paired_loss, ratio
from launcher.quantize.gate.shape import Check, Figure, Limits, Verdict


def kl(differences: Sequence[Difference], limits: Limits, *, is_proxy: bool) -> Check:
    """By how much the probabilities of the next token differ."""
    figure = ratio([each.kl for each in differences], _counts(differences), limits.confidence)
    verdict = _verdict(figure, limits.kl, is_proxy)
    what = (
        f"The quantized model's probabilities of the next token differ from the original's by {figure.value:.3f} nats "
        f"on average (KL divergence; 0 is no difference)"
    )
    said = {
        Verdict.PASS: f"{_surely(limits)} by no more than {figure.high:.3f} (limit {limits.kl:g})",
        Verdict.FAIL: f"{_surely(limits)} by more than {figure.low:.3f} (limit {limits.kl:g}): it says other things",
        Verdict.INCONCLUSIVE: f"{_between(f'{figure.low:.3f}', f'{figure.high:.3f}', f'{limits.kl:g}')}",
    }
    if verdict is Verdict.PASS and figure.high >= limits.kl:
        said[verdict] = f"that is not clearly more than the limit of {limits.kl:g}, and the task decides"
    return Check("token KL", figure, limits.kl, "nats", verdict, f"{what}; {said[verdict]}.")


def agreement(differences: Sequence[Difference], limits: Limits, *, is_proxy: bool) -> Check:
    """How often both would say the same token next."""
    figure = ratio([each.agreed for each in differences], _counts(differences), limits.confidence)
    figure = Figure(figure.value, max(0.0, figure.low), min(1.0, figure.high))
    verdict = _verdict(Figure(-figure.value, -figure.high, -figure.low), -limits.agreement, is_proxy)
    what = f"Both models hold the same next token for the most likely at {_percent(figure.value)} of the places"
    limit = f"limit {_percent(limits.agreement)}"
    said = {
        Verdict.PASS: f"{_surely(limits)} at no less than {_percent(figure.low)} ({limit})",
        Verdict.FAIL: f"{_surely(limits)} at less than {_percent(figure.high)} ({limit}): greedy answers soon differ",
        Verdict.INCONCLUSIVE: _between(_percent(figure.low), _percent(figure.high), _percent(limits.agreement)),
    }
    if verdict is Verdict.PASS and figure.low <= limits.agreement:
        said[verdict] = f"that is not clearly less than the limit of {_percent(limits.agreement)}, and the task decides"
    return Check("top-1 agreement", figure, limits.agreement, "share", verdict, f"{what}; {said[verdict]}.")


def accuracy(differences: Sequence[Difference], limits: Limits) -> Check:
    """How much less often the most likely token is the one that really stands there.

    The bounds are the wider ones of two: over whole records, whose tokens depend on each other, and over tokens as if
    they did not, which knows that no change in few tokens is no proof of none.
    """
    over_records = ratio(
        [100.0 * (each.worse - each.better) for each in differences], _counts(differences), limits.confidence
    )
    worse, better = sum(each.worse for each in differences), sum(each.better for each in differences)
    over_tokens = paired_loss(worse, better, sum(_counts(differences)), limits.confidence)
    figure = Figure(
        over_records.value, min(over_records.low, over_tokens.low), max(over_records.high, over_tokens.high)
    )
    verdict = _verdict(figure, limits.loss, True)
    what = f"The quantized model guesses the real next token {lost(figure.value)} often than the original"
    said = {
        Verdict.PASS: f"{_surely(limits)} the loss is below {figure.high:.2f} points (limit {limits.loss:g})",
        Verdict.FAIL: f"{_surely(limits)} the loss is above {figure.low:.2f} points (limit {limits.loss:g})",
        Verdict.INCONCLUSIVE: _between(f"{figure.low:.2f}", f"{figure.high:.2f} points lost", f"{limits.loss:g}"),
    }
    return Check("next-token accuracy", figure, limits.loss, "points", verdict, f"{what}; {said[verdict]}.")


def nll_change(differences: Sequence[Difference]) -> Figure:
    """Nats a token, with its two-sided 95 % interval."""
    return ratio([each.nll for each in differences], _counts(differences), 0.975)


def mean_kl(differences: Sequence[Difference]) -> float:
    """Nats a token."""
    return sum(each.kl for each in differences) / max(1, sum(_counts(differences)))


def lost(points: float) -> str:
    """In words: ``0.30 points less``."""
    return f"{abs(points):.2f} points {'less' if points >= 0 else 'more'}"


def _verdict(loss: Figure, limit: float, is_proxy: bool) -> Verdict:
    """Beside a labelled task, such a figure only catches breakage."""
    if loss.low > limit:
        return Verdict.FAIL
    return Verdict.PASS if loss.high < limit or not is_proxy else Verdict.INCONCLUSIVE


def _counts(differences: Sequence[Difference]) -> list[int]:
    return [each.positions for each in differences]


def _surely(limits: Limits) -> str:
    return f"with {_percent(limits.confidence)} confidence"


def _between(low: str, high: str, limit: str) -> str:
    return f"it may be anything from {low} to {high} (limit {limit}): more held-out records would tell"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
