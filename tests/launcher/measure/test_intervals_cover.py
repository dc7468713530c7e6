"""By simulation: the intervals of measurements hold the truth as often as they say, 95 of 100 times."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from launcher.measure.figures import share
from launcher.measure.figures_shape import Span
from launcher.measure.quantiles import mean, needed, percentile
from launcher.measure.rates import output, rate
from tests.launcher.measure.requests import sample

RUNS = 400
LEAST = 0.93
LATENCY = stats.lognorm(s=0.6, scale=0.2)


def alone(random: np.random.Generator, count: int) -> np.ndarray:
    """Independent requests."""
    return LATENCY.ppf(random.random(count))


def together(random: np.random.Generator, count: int) -> np.ndarray:
    """Requests of which each is much like the one before (correlation 0.7), with the same distribution."""
    noise, level = random.standard_normal(count), np.empty(count)
    level[0] = noise[0]
    for i in range(1, count):
        level[i] = 0.7 * level[i - 1] + np.sqrt(1 - 0.7**2) * noise[i]
    return LATENCY.ppf(stats.norm.cdf(level))


@pytest.mark.parametrize(("drawn", "count"), [(alone, 60), (alone, 600), (together, 1000)])
def test_means_of_latencies(drawn: Callable[..., np.ndarray], count: int):
    random = np.random.default_rng(1)
    intervals = [mean(drawn(random, count)) for _ in range(RUNS)]
    assert np.mean([each.low <= LATENCY.mean() <= each.high for each in intervals]) >= LEAST


@pytest.mark.parametrize(
    ("drawn", "count", "percent"),
    [(alone, 40, 50), (alone, 60, 90), (alone, 500, 99), (alone, 1000, 95), (together, 1000, 50), (together, 2000, 95)],
)
def test_percentiles_of_latencies(drawn: Callable[..., np.ndarray], count: int, percent: int):
    random, truth = np.random.default_rng(2), LATENCY.ppf(percent / 100)
    found = [percentile(drawn(random, count), percent) for _ in range(RUNS)]
    told = [each for each in found if each is not None]
    assert len(told) >= 0.8 * RUNS
    assert np.mean([each.low <= truth <= each.high for each in told]) >= LEAST


@pytest.mark.parametrize(("percent", "count"), [(50, 6), (90, 36), (95, 72), (99, 368)])
def test_a_percentile_is_told_from_so_many_requests_on(percent: int, count: int):
    assert needed(percent) == count
    values = [number * 0.618 % 1 for number in range(count)]
    assert percentile(values[:-1], percent) is None
    assert percentile(values, percent) is not None


def test_tokens_a_second_of_a_closed_loop():
    random, truths = np.random.default_rng(3), []
    for _ in range(150):
        samples, clients = [], 4
        for _ in range(clients):
            now = 0.0
            while now < 60:
                tokens, pace = int(random.integers(10, 60)), 0.02 * random.lognormal(0, 0.3)
                total = 0.1 + pace * (tokens - 1)
                samples.append(sample(sent=now, tokens=tokens, total=total))
                now += total
        found = rate(samples, Span(10, 50), output)
        mean_total = 0.1 + 0.02 * np.exp(0.3**2 / 2) * 33.5
        truths.append(found.low <= clients * 34.5 / mean_total <= found.high)
    assert np.mean(truths) >= LEAST


@pytest.mark.parametrize("truth", [0.5, 0.9])
def test_shares(truth: float):
    random = np.random.default_rng(4)
    found = [share(int(random.binomial(200, truth)), 200) for _ in range(RUNS)]
    assert np.mean([each.low <= truth <= each.high for each in found]) >= LEAST
