"""What was chosen at tested loads becomes K for every batch of one engine."""

import pytest

from launcher.measure.interval import Interval
from launcher.profile import Speculation, SpeculationMethod
from launcher.speculation.evidence import Choice
from launcher.speculation.schedule import k_at, schedule
from tests.launcher.speculation.simulator import PUBLISHED


def chosen(*pairs):
    one = Interval(1, 1, 1)
    return [Choice(concurrency, "ngram" if k else "off", k, one, one, "") for concurrency, k in pairs]


def test_each_tested_batch_gets_its_k_and_beyond_them_nothing_is_drafted():
    found = schedule(chosen((1, 4), (4, 2), (8, 0)), 1, 256, None)
    assert [k_at(found, batch) for batch in (1, 4, 8, 9, 256, 5000)] == [4, 2, 0, 0, 0, 0]
    assert schedule(chosen((1, 4), (8, 4)), 1, 16, None) == ((1, 8, 4), (9, 16, 0))


def test_between_tested_batches_the_smaller_k_holds_without_a_model():
    assert schedule(chosen((1, 4), (8, 0)), 1, 16, None) == ((1, 1, 4), (2, 16, 0))
    assert schedule(chosen((1, 2), (8, 4)), 1, 16, None) == ((1, 7, 2), (8, 8, 4), (9, 16, 0))


def test_between_tested_batches_a_model_says_where_one_k_overtakes_the_other():
    found = schedule(chosen((1, 4), (32, 0)), 1, 64, PUBLISHED)
    last = found[0][1]
    assert 1 < last < 32
    assert PUBLISHED.throughput(last, 4) > PUBLISHED.throughput(last, 0)
    assert PUBLISHED.throughput(last + 1, 4) <= PUBLISHED.throughput(last + 1, 0)


def test_a_load_is_spread_over_engines_and_loads_of_the_same_batch_take_the_smaller_k():
    assert schedule(chosen((1, 4), (4, 3), (8, 1)), 4, 16, None) == ((1, 1, 3), (2, 2, 1), (3, 16, 0))


def test_batches_below_the_smallest_tested_one_have_its_k():
    assert schedule(chosen((4, 3)), 1, 4, None) == ((1, 4, 3),)


def test_no_speculation_is_no_schedule():
    assert schedule(chosen((1, 0), (8, 0)), 1, 16, None) == ()


@pytest.mark.parametrize("pairs", [[(1, 4), (8, 0)], [(2, 0), (4, 5), (16, 1)], [(3, 8)], [(1, 1), (2, 2), (3, 3)]])
def test_a_profile_takes_every_schedule(pairs):
    found = schedule(chosen(*pairs), 1, None, None)
    text = Speculation(
        method=SpeculationMethod.NGRAM, num_speculative_tokens=8, schedule=[tuple(each) for each in found]
    )
    assert text.schedule == [*found]
