"""Pairs of models that exist on paper only, whose true difference is known."""

import numpy as np

from launcher.quantize.gate.compare import Difference

RECORD_TOKENS = 100
"""On average; lengths vary as those of answers do."""
KL = 0.1


def with_kl(records: int, random: np.random.Generator, *, of_records: float) -> list[Difference]:
    """Whose mean KL is truly :data:`KL`; it varies by token and, by so much (sigma of its logarithm), by record."""
    return [
        _difference(tokens, kl=float(random.exponential(KL * each, tokens).sum()))
        for tokens, each in zip(_lengths(records, random), _levels(records, random, of_records), strict=True)
    ]


def with_loss(
    records: int, random: np.random.Generator, *, points: float, flips: float, of_records: float
) -> list[Difference]:
    """Who loses truly so many points, while this share of tokens becomes right or wrong, more in some records."""
    found = []
    for tokens, each in zip(_lengths(records, random), _levels(records, random, of_records), strict=True):
        worse, better = (float(np.clip((flips + sign * points / 100) / 2 * each, 0, 0.5)) for sign in (1, -1))
        became = random.multinomial(tokens, (worse, better, 1 - worse - better))
        found.append(_difference(tokens, worse=int(became[0]), better=int(became[1])))
    return found


def _lengths(records: int, random: np.random.Generator) -> list[int]:
    return [int(each) for each in random.gamma(2, RECORD_TOKENS / 2, records) + 5]


def _levels(records: int, random: np.random.Generator, sigma: float) -> np.ndarray:
    """Of mean 1."""
    return random.lognormal(-(sigma**2) / 2, sigma, records)


def _difference(tokens: int, kl: float = 0.0, worse: int = 0, better: int = 0) -> Difference:
    return Difference(tokens, kl, tokens, worse, better, 0.0)
