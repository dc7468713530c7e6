"""Made-up experiments: sessions of very different lengths, whose requests are alike, looked at all the time."""

from dataclasses import dataclass

import numpy as np

from proxy.sequential import Mass, Question, Verdict, judge
from proxy.split import BUCKETS


@dataclass(frozen=True)
class Simulated:
    """One kind of experiment."""

    sessions: int
    share: float = 0.5
    """B's of the buckets."""
    spread: float = 1.5
    """Of the logarithm of the sessions' lengths, which are 6 requests in the mean."""
    likeness: float = 0.3
    """Correlation of two requests of one session."""
    effect: float = 0.0
    """B's mean less A's."""
    base: float | None = 0.8
    """A's share of good requests; ``None`` for values with a normal distribution of variance 1."""
    looks: int = 20
    alpha: float = 0.05
    margin: float = 0.05
    copied: bool = False
    """Each request goes to A, and a copy of it to B; either adds some noise."""

    def run(self, seed: int) -> tuple[Verdict, int]:
        """The first verdict that says something, else the last one, and after how many requests."""
        buckets, in_b, values = self._requests(np.random.default_rng(seed))
        question = Question(self.margin, self.alpha, higher_is_better=True, is_share=self.base is not None)
        verdict, seen = Verdict.NOT_ENOUGH, 0
        for seen in np.linspace(0, len(values), self.looks + 1).astype(int)[1:]:
            arms = [_masses(buckets[:seen], values[:seen], in_b[:seen] == arm) for arm in (False, True)]
            verdict = judge(*arms, question, minimum_requests=200, minimum_buckets=30).verdict
            if verdict in (Verdict.BETTER, Verdict.WORSE):
                break
        return verdict, int(seen)

    def _requests(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In the order of time: bucket, whether of B, value."""
        lengths = rng.lognormal(np.log(6) - self.spread**2 / 2, self.spread, self.sessions)
        lengths = np.maximum(1, np.round(lengths)).astype(int)
        bucket = rng.integers(0, BUCKETS, self.sessions)
        in_b = bucket < self.share * BUCKETS
        session = np.repeat(np.arange(self.sessions), lengths)
        at = rng.uniform(0, 1, self.sessions)[session] + rng.exponential(0.1, len(session))
        session = session[np.argsort(at)]
        if self.base is None:
            own = rng.normal(0, np.sqrt(self.likeness), self.sessions) + in_b * self.effect * (not self.copied)
            values = own[session] + rng.normal(0, np.sqrt(1 - self.likeness), len(session))
        else:
            spread = (1 - self.likeness) / self.likeness
            own = rng.beta(self.base * spread, (1 - self.base) * spread, self.sessions) + in_b * self.effect
            values = (rng.uniform(size=len(session)) < own[session]).astype(float)
        if not self.copied:
            return bucket[session], in_b[session], values
        copies = values + self.effect + rng.normal(0, 0.5, len(values))
        both = np.stack([values + rng.normal(0, 0.5, len(values)), copies], axis=1).ravel()
        return np.repeat(bucket[session], 2), np.tile([False, True], len(values)), both


def _masses(buckets: np.ndarray, values: np.ndarray, which: np.ndarray) -> dict[int, Mass]:
    buckets, values = buckets[which], values[which]
    n, total, squares = (np.bincount(buckets, weights, BUCKETS) for weights in (None, values, values**2))
    return {int(b): Mass(float(n[b]), float(total[b]), float(squares[b])) for b in np.nonzero(n)[0]}
