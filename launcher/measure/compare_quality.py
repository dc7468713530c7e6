"""Decision: answers of both sides -> whether B's are worse.

Where the workload knows answers, the share that has them is compared item by item. Else greedy texts are compared:
how often B says the same as A, against how often A says the same as itself, since no engine is the same at any batch.
"""

from collections.abc import Iterable, Mapping, Sequence

from launcher.measure.compare_shape import Block, Quality, Side, Verdict
from launcher.measure.interval import Interval
from launcher.measure.request import Request
from launcher.measure.sample import Sample
from launcher.quantize.gate.intervals import paired_loss

_MARGIN = 2.0
"""Points of 100 that may be lost and still count as the same."""
_CONFIDENCE = 0.975
"""Of each one-sided bound, so 95 % two-sided."""


def right(blocks: Sequence[Block], requests: Mapping[int, Sequence[Request]]) -> Quality | None:
    """By the answers that the requests of each pair know; ``None`` where none does, or no text was kept.

    An item is one request of one pair, answered by both sides.
    """
    worse = better = items = of_a = of_b = 0
    for one, other in _pairs(blocks):
        texts_a, texts_b = _texts(one.samples), _texts(other.samples)
        for number in texts_a.keys() & texts_b.keys():
            asked = requests[one.pair]
            answer = asked[number % len(asked)].answer
            if answer is None:
                continue
            has_a, has_b = _has(answer, texts_a[number]), _has(answer, texts_b[number])
            items, of_a, of_b = items + 1, of_a + has_a, of_b + has_b
            worse, better = worse + (has_a and not has_b), better + (has_b and not has_a)
    if not items:
        return None
    return _judged("answers", items, of_a, of_b, worse, better)


def agreement(blocks: Sequence[Block]) -> Quality | None:
    """By the texts of the probes; ``None`` where A was not asked twice, or B never.

    An item is one probe: whether A's second text is its first, and whether B's first text is A's first.
    """
    a = [_texts(block.probes) for block in blocks if block.side is Side.A]
    b = [_texts(block.probes) for block in blocks if block.side is Side.B]
    if len(a) < 2 or not b:
        return None
    shared = a[0].keys() & a[1].keys() & b[0].keys()
    if not shared:
        return None
    itself = {number for number in shared if a[0][number] == a[1][number]}
    same = {number for number in shared if a[0][number] == b[0][number]}
    return _judged("agreement", len(shared), len(itself), len(same), len(itself - same), len(same - itself))


def _judged(kind: str, items: int, of_a: int, of_b: int, worse: int, better: int) -> Quality:
    figure = paired_loss(worse, better, items, _CONFIDENCE)
    loss = Interval(figure.value, figure.low, figure.high)
    what = "right answers" if kind == "answers" else "equal greedy texts"
    interval = f"{loss.low:.1f} to {loss.high:.1f}"
    told = f"{of_b} of {items} {what} against {of_a}: {loss.value:.1f} points lost ({interval})"
    if loss.low > 0:
        verdict = Verdict.WORSE
    elif loss.high < 0:
        verdict = Verdict.BETTER
    elif loss.low >= -_MARGIN and loss.high <= _MARGIN:
        verdict = Verdict.SAME
    else:
        verdict, told = Verdict.UNKNOWN, f"{told}: more items are needed to be within {_MARGIN:g} points"
    return Quality(kind, items, of_a / items, of_b / items, loss, verdict, told)


def _has(answer: str, text: str) -> bool:
    return answer.casefold().strip() in text.casefold()


def _texts(samples: Iterable[Sample]) -> dict[int, str]:
    return {each.number: each.text for each in samples if each.error is None and each.text is not None}


def _pairs(blocks: Sequence[Block]) -> list[tuple[Block, Block]]:
    found: dict[int, dict[Side, Block]] = {}
    for block in blocks:
        found.setdefault(block.pair, {})[block.side] = block
    return [(sides[Side.A], sides[Side.B]) for sides in found.values() if len(sides) == 2]
