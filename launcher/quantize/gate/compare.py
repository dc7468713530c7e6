"""Decision: how much two models' scores of the same records differ, record by record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.errors import QuantizeError
from launcher.quantize.gate.scores import WIDTH, RecordScores, Scores

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

_LEAST = 1e-6
"""Probability that is left for all other tokens, at least: what rounding may have taken."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one record; sums over its positions."""

    positions: int
    kl: float
    """Nats from the baseline's distribution of the next token to the other's."""
    agreed: int
    """Positions at which both have the same most likely token."""
    worse: int
    """Positions at which only the baseline's is the token that stands there."""
    better: int
    """The same of the other."""
    nll: float
    """Nats by which the text became less likely."""


def compare(baseline: Scores, other: Scores) -> tuple[Difference, ...]:
    """Of all records that both could score; ``other`` may have only the first ones.

    Raises :class:`QuantizeError` when they are not of the same records.
    """
    pairs = zip(baseline.records, other.records, strict=False)
    return tuple(
        _difference(number, a, b)
        for number, (a, b) in enumerate(pairs)
        if a.damage is None and b.damage is None and (a.positions or b.positions)
    )


def _difference(number: int, a: RecordScores, b: RecordScores) -> Difference:
    if a.actual != b.actual:
        raise QuantizeError(
            f"record {number} was scored at other tokens with one model than with the other: remove the kept scores, "
            "and score both anew"
        )
    right_a, right_b = _most_likely(a) == _array(a.actual), _most_likely(b) == _array(b.actual)
    return Difference(
        positions=a.positions,
        kl=float(kl(a, b).sum()),
        agreed=int((_most_likely(a) == _most_likely(b)).sum()),
        worse=int((right_a & ~right_b).sum()),
        better=int((right_b & ~right_a).sum()),
        nll=float((_array(a.logprobs) - _array(b.logprobs)).sum()),
    )


def kl(a: RecordScores, b: RecordScores) -> "NDArray[np.float64]":
    """Nats at each position, estimated from the most likely tokens of ``a``, all others taken together.

    One of them that is not among those of ``b`` cannot be more likely there than the last of these: that, or an equal
    share of what ``b`` leaves for all that it does not tell, whichever is less, is taken for it.
    Exactly 0 for the same.
    """
    import numpy as np

    ids, other_ids = _array(a.top).reshape(-1, WIDTH), _array(b.top).reshape(-1, WIDTH)
    p, told = np.exp(_array(a.top_logprobs).reshape(-1, WIDTH)), np.exp(_array(b.top_logprobs).reshape(-1, WIDTH))
    same = ids[:, :, None] == other_ids[:, None, :]
    is_told = same.any(axis=2)
    missing = (~is_told).sum(axis=1, keepdims=True)
    untold = np.maximum(_LEAST, 1 - told.sum(axis=1, keepdims=True))
    guess = np.minimum(told[:, -1:], untold / (missing + 1))
    q = np.where(is_told, (same * told[:, None, :]).sum(axis=2), guess)
    p, q = (np.column_stack([each, np.maximum(_LEAST, 1 - each.sum(axis=1))]) for each in (p, q))
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(p > 0, p * (np.log(p) - np.log(np.maximum(q, np.finfo(float).tiny))), 0)
    return np.asarray(np.maximum(0, parts.sum(axis=1)))


def _most_likely(scores: RecordScores) -> "NDArray[np.float64]":
    return _array(scores.top)[::WIDTH]


def _array(values: "array[int] | array[float]") -> "NDArray[np.float64]":
    import numpy as np

    return np.asarray(values, dtype=float)
