"""Contract decision: what a comparison of two arms shows so far, by statistics that may be read at any time.

Two things make a usual test wrong here. It is right only when it is read once, at an end that was fixed before; and it
counts requests as independent of each other, which those of one session are not. So:

- the unit is the bucket, which is what was assigned to an arm. The variance of a mean is that of its buckets' sums
  (linearised, as for cluster samples), and never below that of independent requests, but for copies;
- the interval holds at all times together: a normal mixture boundary (Robbins; Howard et al. 2021, asymptotic as in
  Waudby-Smith et al. 2021), in the time of the statistical information, which is 1 / variance. For an effect of
  persistent buckets the estimates at two looks have the covariance of the later one, as sums of independent
  increments have, so that the boundary fits them.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

ALPHA = 0.05
"""The chance that an experiment without any effect ever says that there is one, in any of its metrics."""
_AIM = 2.0
"""The boundary is tightest where a difference of so many margins has just been found, which takes 3 deviations."""
_TIGHTEST = 8.0
"""It is so at this many times the mixture's own information; about -2 log(alpha) + log(1 - 2 log(alpha))."""


class Mass(NamedTuple):
    """The values of one metric in one bucket of one arm."""

    n: float = 0
    total: float = 0.0
    squares: float = 0.0


Buckets = Mapping[int, Mass]


@dataclass(frozen=True, slots=True)
class Side:
    """One arm in one metric."""

    mean: float
    requests: int
    buckets: float
    """As many of equal size would tell as much: one bucket with nearly all requests counts as one."""


class Difference(NamedTuple):
    """B's mean less A's."""

    value: float
    variance: float


class Verdict(StrEnum):
    """What is shown of B, compared with A."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference shown"
    """None beyond the margin: the whole interval lies within it."""
    NOT_ENOUGH = "not enough data"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one metric."""

    margin: float
    """Of differences that do not matter; in the metric's unit."""
    alpha: float
    """The chance of a wrong answer."""
    higher_is_better: bool
    is_share: bool = False
    """Whether values are 0 or 1: then a variance of 0 is not believed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer. The difference and its interval are in the metric's unit; ``None`` where nothing can be said."""

    verdict: Verdict
    reason: str
    a: Side | None
    b: Side | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


def side(buckets: Collection[Mass]) -> Side | None:
    """An arm's mean; ``None`` without a value."""
    requests = sum(mass.n for mass in buckets)
    if not requests:
        return None
    effective = requests**2 / sum(mass.n**2 for mass in buckets)
    return Side(sum(mass.total for mass in buckets) / requests, int(requests), effective)


def difference(a: Buckets, b: Buckets, *, is_share: bool = False) -> Difference:
    """Of two arms that have values. Buckets that both have, as copies make them, are compared with themselves."""
    n_a, n_b = (sum(mass.n for mass in arm.values()) for arm in (a, b))
    mean_a, mean_b = (sum(mass.total for mass in arm.values()) / n for arm, n in ((a, n_a), (b, n_b)))
    clustered, none = 0.0, Mass()
    for bucket in a.keys() | b.keys():
        in_a, in_b = a.get(bucket, none), b.get(bucket, none)
        clustered += ((in_b.total - mean_b * in_b.n) / n_b - (in_a.total - mean_a * in_a.n) / n_a) ** 2
    few = min(_effective(a), _effective(b))
    clustered *= few / (few - 1) if few > 1 else math.inf
    value = mean_b - mean_a
    if not is_share and 2 * len(a.keys() & b.keys()) > len(a.keys() | b.keys()):
        return Difference(value, clustered)  # copies are not independent of their originals
    independent = _independent(a, n_a, mean_a, is_share) + _independent(b, n_b, mean_b, is_share)
    return Difference(value, max(clustered, independent))


def _effective(arm: Buckets) -> float:
    return float(sum(mass.n for mass in arm.values()) ** 2 / sum(mass.n**2 for mass in arm.values()))


def _independent(arm: Buckets, n: float, mean: float, is_share: bool) -> float:
    """The variance of the mean, were all requests independent."""
    if is_share:  # 0 of 50 is no proof of 0: two more of each kind, as Agresti and Coull add them
        mean = (mean * n + 2) / (n + 4)
        return mean * (1 - mean) / n
    return max(0.0, sum(mass.squares for mass in arm.values()) / n - mean**2) / n


def radius(variance: float, alpha: float, margin: float) -> float:
    """Half the width of the interval that covers at all times with the chance 1 - ``alpha``.

    ``margin`` sets where it is tightest, and so has to be fixed before any data are seen.
    """
    relative = (3 / (_AIM * margin)) ** 2 / _TIGHTEST * variance
    return math.sqrt(variance * (1 + relative) * math.log((1 + 1 / relative) / alpha**2)) if variance else 0.0


def judge(a: Buckets, b: Buckets, question: Question, *, minimum_requests: int, minimum_buckets: int) -> Finding:
    """What two arms show of one metric."""
    side_a, side_b = side(a.values()), side(b.values())
    for name, each in (("A", side_a), ("B", side_b)):
        requests, buckets = (0, 0.0) if each is None else (each.requests, each.buckets)
        if requests < minimum_requests:
            reason = f"{name} has {requests} of the {minimum_requests} requests that are the least"
            return Finding(Verdict.NOT_ENOUGH, reason, side_a, side_b)
        if buckets < minimum_buckets:
            reason = (
                f"the requests of {name} are as few sessions as {buckets:.0f} buckets of equal size would be; "
                f"{minimum_buckets} are the least"
            )
            return Finding(Verdict.NOT_ENOUGH, reason, side_a, side_b)
    value, variance = difference(a, b, is_share=question.is_share)
    half = radius(variance, question.alpha, question.margin)
    low, high = value - half, value + half
    verdict, reason = _verdict(low, high, question)
    return Finding(verdict, reason, side_a, side_b, value, low, high)


def _verdict(low: float, high: float, question: Question) -> tuple[Verdict, str]:
    if low > 0 or high < 0:
        better = (low > 0) is question.higher_is_better
        return (Verdict.BETTER if better else Verdict.WORSE), "the interval does not contain 0"
    if -question.margin < low and high < question.margin:
        return Verdict.NO_DIFFERENCE, "the interval lies within the margin"
    return Verdict.NOT_ENOUGH, "the interval contains 0 and more than the margin: more requests make it smaller"
