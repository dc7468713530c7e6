"""Bounds of shares, differences and means."""

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from launcher.quantize.gate.intervals import paired_loss, quantile, ratio, resampled, score, share_low
from launcher.quantize.gate.shape import Figure


def by_search(worse: int, better: int, items: int, loss: float) -> float:
    """Tango's statistic without its closed form: the likelihood's maximum is searched."""

    def unlikely(share: float) -> float:
        shares = (share + loss, share, 1 - 2 * share - loss)
        counts = (worse, better, items - worse - better)
        return -sum(count * math.log(max(each, 1e-300)) for count, each in zip(counts, shares, strict=True) if count)

    found = minimize_scalar(unlikely, bounds=(1e-12, (1 - loss) / 2), method="bounded", options={"xatol": 1e-12})
    spread = items * (2 * float(found.x) + loss * (1 - loss))
    return (worse - better - items * loss + 1) / math.sqrt(spread)


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (3, 0), (0, 3), (12, 2), (20, 20), (40, 10)])
def test_the_statistic_uses_the_likeliest_shares_at_a_loss(worse, better):
    for loss in (0.01, 0.05, 0.2):
        assert score(float(worse), float(better), 300, loss) == pytest.approx(
            by_search(worse, better, 300, loss), rel=1e-4
        )


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(60, 3000))
def test_bounds_hold_the_value_and_turn_with_the_sides(worse, better, items):
    found, turned = paired_loss(worse, better, items, 0.95), paired_loss(better, worse, items, 0.95)
    assert -100 <= found.low < found.value < found.high <= 100
    assert (found.low, found.high) == pytest.approx((-turned.high, -turned.low))
    if found.high < 99:
        assert score(float(worse), float(better), items, found.high / 100) == pytest.approx(-quantile(0.95), abs=1e-3)


def test_no_change_in_so_many_items_bounds_the_loss_as_the_rule_of_three_does():
    assert paired_loss(0, 0, 300, 0.95).high > 100 * (1 - 0.05 ** (1 / 300))
    assert paired_loss(0, 0, 600, 0.95).high < 1


def test_a_share_has_a_lower_bound():
    assert share_low(50, 100, 0.95) == pytest.approx(0.419, abs=0.002)
    assert 0.7 < share_low(10, 10, 0.95) < 0.8
    assert share_low(0, 10, 0.95) == pytest.approx(0)


def test_records_without_any_spread_have_no_doubt():
    assert ratio([0.0] * 40, [7] * 40, 0.95) == Figure(0.0, 0.0, 0.0)
    assert ratio([3.0, 6.0], [1, 2], 0.95) == Figure(3.0, 3.0, 3.0)


def test_one_record_tells_nothing_of_others():
    assert ratio([1.0], [4], 0.95) == Figure(0.25, -math.inf, math.inf)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-50, 50), st.integers(1, 400)), min_size=2, max_size=40))
def test_bounds_are_numbers_on_both_sides(records):
    with warnings.catch_warnings(action="error"):
        found = ratio([each for each, _ in records], [count for _, count in records], 0.95)
    assert math.isfinite(found.low)
    assert math.isfinite(found.high)


def test_one_changed_token_in_one_record_gives_bounds():
    found = ratio([100.0, *[0.0] * 39], [10] * 40, 0.95)
    assert found.low <= found.value <= found.high
    assert found.high > found.value


def test_a_statistic_is_resampled_with_its_members_together():
    values = [*range(1, 101)]
    times_three = [3 * each for each in values]
    found = resampled(lambda a, b, axis: b.sum(axis=axis) / a.sum(axis=axis), [values, times_three], 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 3.0, 3.0))
