"""A step's time and tokens, fitted to measured points, tell loads between them."""

import numpy as np
import pytest

from launcher.speculation.model import expected_length, fit
from tests.launcher.speculation.simulator import PUBLISHED, measured, truth


def test_the_simulator_is_what_was_published():
    assert PUBLISHED.throughput(1, 0) == pytest.approx(33.8, rel=0.01)
    assert PUBLISHED.throughput(1, 4) == pytest.approx(56.4, rel=0.03)
    assert PUBLISHED.throughput(32, 0) == pytest.approx(867.8, rel=0.01)
    assert PUBLISHED.throughput(32, 4) == pytest.approx(0.84 * 867.8, rel=0.03)
    assert 0.86 <= (PUBLISHED.length(4) - 1) / 4 <= 0.91


def test_a_fit_to_exact_points_tells_the_loads_between_them():
    points = [truth(PUBLISHED, "eagle", k, load) for load in (1, 8, 32) for k in (0, 1, 2, 4)]
    model = fit(points, engines=1)
    assert model is not None
    assert model.is_good
    for load in (2, 4, 16, 24):
        for k in (0, 2, 3, 4):
            assert model.throughput(load, k) == pytest.approx(PUBLISHED.throughput(load, k), rel=0.01)


def test_a_fit_to_noisy_points_is_nearly_as_good():
    rng = np.random.default_rng(0)
    points = [measured(PUBLISHED, "eagle", k, load, rng, 0.05) for load in (1, 8, 32) for k in (0, 2, 4, 8)]
    model = fit(points, engines=1)
    assert model is not None
    assert model.throughput(16, 2) == pytest.approx(PUBLISHED.throughput(16, 2), rel=0.06)


def test_a_load_is_shared_by_the_engines():
    points = [truth(PUBLISHED, "eagle", k, load) for load in (1, 8, 32) for k in (0, 1, 2, 4)]
    model = fit(points, engines=2)
    assert model is not None
    assert 2 * model.throughput(8, 2) == pytest.approx(PUBLISHED.throughput(16, 2), rel=0.01)


def test_too_few_points_tell_nothing():
    assert fit([truth(PUBLISHED, "eagle", k, 4) for k in (0, 1, 2, 4)], engines=1) is None
    assert fit([truth(PUBLISHED, "eagle", 0, load) for load in (1, 2, 4, 8)], engines=1) is None


def test_nothing_accepted_leaves_the_models_own_token():
    assert expected_length(0.0, 5) == 1.0
    assert expected_length(1.0, 5) == 6.0
