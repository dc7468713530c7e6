"""When the requests of an open loop are due."""

from itertools import islice

import numpy as np
import pytest

from launcher.errors import MeasureError
from launcher.measure.arrivals import due_times
from launcher.measure.load import Arrivals, Open
from tests.launcher.measure.requests import prompts


def first(count: int, load: Open, requests=(), seed: int = 0) -> list[float]:
    return [*islice(due_times(load, requests, seed), count)]


def test_poisson_arrivals_have_the_rate_and_the_spread_of_independent_clients():
    times = np.array(first(20_000, Open(Arrivals.POISSON, rate=5)))
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(1 / 5, rel=0.03)
    assert gaps.std() == pytest.approx(1 / 5, rel=0.03)


def test_the_seed_decides():
    load = Open(Arrivals.POISSON, rate=5)
    assert first(50, load, seed=1) == first(50, load, seed=1)
    assert first(50, load, seed=1) != first(50, load, seed=2)


def test_constant_arrivals_are_even():
    assert first(4, Open(Arrivals.CONSTANT, rate=4)) == [0.0, 0.25, 0.5, 0.75]


def test_a_trace_begins_at_once_and_again_after_its_end():
    requests = prompts(3, times=[10.0, 11.0, 14.0])
    assert first(5, Open(Arrivals.TRACE), requests) == [0.0, 1.0, 4.0, 6.0, 7.0]
    assert first(3, Open(Arrivals.TRACE, speed=2), requests) == [0.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("load", "times", "said"),
    [
        (Open(Arrivals.POISSON), [], "--rate"),
        (Open(Arrivals.CONSTANT, rate=0.0), [], "--rate"),
        (Open(Arrivals.TRACE), [1.0], "2 of 3 requests have no time"),
        (Open(Arrivals.TRACE), [2.0, 1.0, 3.0], "sort them"),
        (Open(Arrivals.TRACE, speed=0), [1.0, 2.0, 3.0], "speed 0"),
    ],
)
def test_a_load_that_cannot_be_says_what_is_missing(load: Open, times: list[float], said: str):
    with pytest.raises(MeasureError, match=said):
        first(1, load, prompts(3, times=times))
