"""By simulation: the intervals of measurements hold the truth as often as they say, 95 of 100 times."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from launcher.measure.figures_shape import Span
from launcher.measure.quantiles import mean, needed, percentile, share
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


def queued(random: np.random.Generator, count: int) -> np.ndarray:
    """Requests that queue for one server which is busy half of the time, with the same distribution.

    Their times in the system are exponential of mean 1 (M/M/1).
    """
    gaps, served = random.exponential(1, count), random.exponential(0.5, count)
    waits = np.empty(count)
    waits[0] = random.exponential(1) if random.random() < 0.5 else 0.0
    for i in range(1, count):
        waits[i] = max(0.0, waits[i - 1] + served[i - 1] - gaps[i])
    return LATENCY.ppf(stats.expon.cdf(waits + served))


@pytest.mark.parametrize(
    ("drawn", "count", "least"),
    [(alone, 60, LEAST), (alone, 600, LEAST), (together, 1000, LEAST), (alone, 12, 0.88), (queued, 1000, 0.86)],
)
def test_means_of_latencies(drawn: Callable[..., np.ndarray], count: int, least: float):
    random = np.random.default_rng(1)
    intervals = [mean(drawn(random, count)) for _ in range(RUNS)]
    assert np.mean([each.low <= LATENCY.mean() <= each.high for each in intervals]) >= least


@pytest.mark.parametrize(
    ("drawn", "count", "percent"),
    [
        (alone, 12, 50),
        (alone, 40, 50),
        (alone, 100, 90),
        (alone, 500, 99),
        (alone, 1000, 95),
        (together, 300, 50),
        (together, 2000, 95),
        (queued, 300, 50),
        (queued, 2000, 90),
    ],
)
def test_percentiles_of_latencies(drawn: Callable[..., np.ndarray], count: int, percent: int):
    random, truth = np.random.default_rng(2), LATENCY.ppf(percent / 100)
    found = [percentile(drawn(random, count), percent) for _ in range(RUNS)]
    told = [each for each in found if each is not None]
    assert len(told) >= 0.8 * RUNS
    assert np.mean([each.low <= truth <= each.high for each in told]) >= LEAST


@pytest.mark.parametrize(("percent", "count"), [(50, 8), (90, 51), (95, 89), (99, 386)])
def test_a_percentile_is_told_from_so_many_requests_on(percent: int, count: int):
    assert needed(percent) == count
    values = [*np.random.default_rng(0).random(2 * count)]
    assert percentile(values[: count // 2], percent) is None
    assert percentile(values, percent) is not None


def test_of_values_that_drift_no_interval_is_told():
    drifting = [1 + number / 100 for number in range(200)]
    told = percentile(drifting, 50)
    assert told is not None
    assert (told.value, told.low, told.high) == (pytest.approx(1.995), -np.inf, np.inf)
    assert mean(drifting).high == np.inf


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


@pytest.mark.parametrize(("drawn", "count"), [(alone, 30), (alone, 300), (together, 1000), (queued, 2000)])
@pytest.mark.parametrize("truth", [0.5, 0.9])
def test_shares(drawn: Callable[..., np.ndarray], count: int, truth: float):
    random, objective = np.random.default_rng(4), LATENCY.ppf(truth)
    found = [share([*(drawn(random, count) <= objective)]) for _ in range(RUNS)]
    assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.92
