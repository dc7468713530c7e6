"""Decision: a side that fails more often is worse, however fast its other answers are."""

from collections.abc import Sequence
from dataclasses import replace

from launcher.measure.compare_asked import BlockTold
from launcher.measure.compare_shape import Comparison, Side, Verdict

_SURE = 0.01
_MATTERS = 0.005
"""Share of the requests by which failures must differ."""


def more_failures(of: Comparison, told: Sequence[BlockTold]) -> Comparison:
    """The same, or worse or better by the share of requests that failed."""
    from scipy.stats import fisher_exact

    (a, of_a), (b, of_b) = (_failed(told, side) for side in (Side.A, Side.B))
    if not of_a or not of_b or abs(b / of_b - a / of_a) <= _MATTERS:
        return of
    if float(fisher_exact([[a, of_a - a], [b, of_b - b]])[1]) > _SURE:
        return of
    is_worse = b / of_b > a / of_a
    opposite = Verdict.BETTER if is_worse else Verdict.WORSE
    verdict = (
        Verdict.TRADED if of.verdict in (opposite, Verdict.TRADED) else Verdict.WORSE if is_worse else Verdict.BETTER
    )
    sentence = f"{of.sentence} Failed: {b} of {of_b} requests against {a} of {of_a}."
    return replace(of, verdict=verdict, sentence=sentence.replace(f": {of.verdict}.", f": {verdict}.", 1))


def _failed(told: Sequence[BlockTold], side: Side) -> tuple[int, int]:
    mine = [each for each in told if each.side is side]
    return sum(each.failed for each in mine), sum(each.requests for each in mine)
