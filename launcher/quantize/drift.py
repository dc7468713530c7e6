"""Decision: do live prompts still look like those that a model was calibrated with?"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Counts = np.ndarray[Any, np.dtype[np.int64]]

RATIO_WARNS, RATIO_ALERTS = 1.0, 1.5
PSI_WARNS, PSI_ALERTS = 0.1, 0.25
LEAST_RECORDS = 64
"""Live records below which nothing is said."""
_DRAWS = 200
_MARGIN = 1.05
"""Overdispersion was measured between halves of the calibration; larger samples differ by a little more than it says.

With it, 0 to 5 of 100 pairs of samples of the same text are taken for different ones (docs/quantization.md).
"""
_GROUPS = 10
"""Of lengths, with about as many records of the calibration each."""


class Level(IntEnum):
    """How far production is from the calibration."""

    UNKNOWN = 0
    """Too few live records to tell."""
    FINE = 1
    WARNING = 2
    ALERT = 3


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found."""

    level: Level
    reasons: tuple[str, ...]
    """For people, the worst first."""
    divergence: float
    """Jensen and Shannon's, in bits, of the tokens."""
    expected: float
    """Bits that 95 % of samples of these sizes stay below where nothing has changed."""
    ratio: float
    """Of both; above 1 the tokens have changed."""
    length_psi: float
    """Population stability index of the lengths."""
    psi_expected: float
    """That 99 % of samples of these sizes stay below where nothing has changed."""
    live_records: int
    live_p99: int
    """Tokens of a long live prompt."""
    max_tokens: int
    """Of a record in the calibration."""


def judge(calibration: Mapping[str, Any], live: Mapping[str, Any], seed: int = 0) -> Drift:
    """Of two distributions as the worker's steps make them; the same for the same seed.

    The tokens' divergence depends on how many there are, so it is compared with that of the same tokens dealt out anew
    by chance, times the overdispersion that the calibration had: tokens of one prompt belong together.
    """
    import numpy as np

    chance = np.random.default_rng(seed)
    one, other = _rows(calibration["counts"], live["counts"])
    divergence = _divergence(one, other)
    expected = _dealt(one, other, _divergence, 0.95, chance) * calibration["overdispersion"] * _MARGIN
    groups = _grouped(calibration["lengths"], live["lengths"])
    psi = _psi(*groups)
    psi_expected = _dealt(*groups, _psi, 0.99, chance)
    ratio = divergence / expected if expected else float(divergence > 0)
    found = tuple(_found(calibration, live, ratio, psi, psi_expected))
    few = live["records"] < LEAST_RECORDS
    told = f"{live['records']} live records are too few to tell, at least {LEAST_RECORDS} are needed, better 512."
    return Drift(
        level=Level.UNKNOWN if few else max((level for level, _ in found), default=Level.FINE),
        reasons=(told,) if few else tuple(text for _, text in sorted(found, key=lambda each: -each[0])) or (_FINE,),
        divergence=round(divergence, 5),
        expected=round(expected, 5),
        ratio=round(ratio, 4),
        length_psi=round(psi, 4),
        psi_expected=round(psi_expected, 4),
        live_records=live["records"],
        live_p99=live["p99"],
        max_tokens=calibration["max_tokens"],
    )


_FINE = "Live prompts look like those of the calibration, in their words and in their lengths."


def _found(
    calibration: Mapping[str, Any], live: Mapping[str, Any], ratio: float, psi: float, psi_expected: float
) -> Iterator[tuple[Level, str]]:
    if ratio > RATIO_WARNS:
        strongly = "much " if ratio > RATIO_ALERTS else ""
        yield (
            Level.ALERT if ratio > RATIO_ALERTS else Level.WARNING,
            f"The words of live prompts are {strongly}different: their divergence is {ratio:.2f} times what chance "
            f"explains. Compare the quality with --served, and calibrate with recent records where it has suffered.",
        )
    if psi > max(PSI_WARNS, psi_expected):
        yield (
            Level.ALERT if psi > max(PSI_ALERTS, psi_expected) else Level.WARNING,
            f"The lengths of live prompts are different: index {psi:.2f}, above {PSI_WARNS} they have moved, above "
            f"{PSI_ALERTS} much (99 % of the live prompts have at most {live['p99']:,} tokens, of the calibration's at "
            f"most {calibration['p99']:,}).",
        )
    if live["p99"] > calibration["max_tokens"]:
        yield (
            Level.WARNING,
            f"More than one live prompt in a hundred is longer than {calibration['max_tokens']:,} tokens (up to "
            f"{live['p99']:,}), and calibration saw no more of a record: what comes later was never calibrated.",
        )


def _rows(one: Mapping[str, int], other: Mapping[str, int]) -> "tuple[Counts, Counts]":
    import numpy as np

    names = sorted({*one, *other}, key=int)
    left, right = (np.array([counts.get(name, 0) for name in names], dtype=np.int64) for counts in (one, other))
    return left, right


def _grouped(one: Mapping[str, int], other: Mapping[str, int]) -> "tuple[Counts, Counts]":
    """Neighbouring lengths together until each group has its share of the first."""
    import numpy as np

    left, right = _rows(one, other)
    group = np.minimum((np.cumsum(left) - left) * _GROUPS // max(1, left.sum()), _GROUPS - 1)
    left, right = (np.bincount(group, weights=row, minlength=_GROUPS).astype(np.int64) for row in (left, right))
    return left, right


def _dealt(
    one: "Counts",
    other: "Counts",
    measure: "Callable[[Counts, Counts], float]",
    share: float,
    chance: "np.random.Generator",
) -> float:
    """The quantile of a measure when all that was counted is dealt out anew, to two sides as large as these."""
    import numpy as np

    pool, size = one + other, int(one.sum())
    dealt = (chance.multivariate_hypergeometric(pool, size, method="marginals") for _ in range(_DRAWS))
    return float(np.quantile([measure(some, pool - some) for some in dealt], share))


def _divergence(one: "Counts", other: "Counts") -> float:
    import numpy as np

    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2
    shares = (np.divide(side, middle, out=np.ones_like(side), where=side > 0) for side in (p, q))
    return float(sum((side * np.log2(share)).sum() for side, share in zip((p, q), shares, strict=True)) / 2)


def _psi(one: "Counts", other: "Counts") -> float:
    import numpy as np

    p, q = ((row + 0.5) / (row.sum() + 0.5 * len(row)) for row in (one, other))
    return float(((q - p) * np.log(q / p)).sum())
