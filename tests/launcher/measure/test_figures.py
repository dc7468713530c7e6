"""Samples become figures."""

import math

import numpy as np
import pytest

from launcher.measure.figures import figures, span_of
from launcher.measure.figures_shape import Objectives, Span
from launcher.measure.quantiles import mean, share
from launcher.measure.steady import unsteady
from tests.launcher.measure.requests import sample

NOTHING = Objectives()


def one_after_the_other(count: int, **values) -> list:
    """One client, ten tokens each 0.2 s."""
    return [sample(number, sent=0.2 * number, total=0.2, **values) for number in range(count)]


def test_a_steady_client_is_told_exactly():
    found = figures(one_after_the_other(100), Span(2, 18), Objectives(ttft=0.1, tpot=0.02))
    assert (found.requests, found.failed) == (80, 0)
    assert found.output_rate.value == pytest.approx(50)
    assert found.request_rate.value == pytest.approx(5)
    assert found.total_rate.value == pytest.approx(150)
    assert found.goodput.value == pytest.approx(5)
    assert found.good_output_rate.value == pytest.approx(50)
    assert found.ttft.mean.value == pytest.approx(0.1)
    assert found.tpot.mean.value == pytest.approx(0.1 / 9)
    assert found.e2e.count == 80
    assert (found.prompt_tokens, found.output_tokens) == (20, 10)


def test_what_was_generated_outside_the_span_is_not_counted_in_it():
    whole_run = sample(sent=0, ttft=1.0, total=101.0, tokens=101)
    found = figures([whole_run], Span(51, 61), NOTHING)
    assert found.requests == 0
    assert found.output_rate.value == pytest.approx(1.0)


def test_goodput_counts_what_met_both_objectives():
    slow_start = one_after_the_other(50, ttft=0.15)
    found = figures(slow_start, Span(0, 10), Objectives(ttft=0.1))
    assert (found.good_share.value, found.goodput.value, found.good_output_rate.value) == (0, 0, 0)
    assert figures(slow_start, Span(0, 10), Objectives(ttft=0.2)).good_share.value == 1
    assert figures(slow_start, Span(0, 10), Objectives(tpot=0.001)).good_share.value == 0


def test_failures_are_counted_by_kind_and_are_neither_fast_nor_good():
    failed = [
        sample(sent=0.5 + i, error=f"HTTP 503: busy {i}", ttft=None, total=0.001, tokens=0, events=0, finish=None)
        for i in range(3)
    ]
    found = figures([*one_after_the_other(50), *failed], Span(0, 10), NOTHING)
    assert (found.requests, found.failed) == (53, 3)
    assert found.errors == {"HTTP 503": 3}
    assert found.examples == {"HTTP 503": "HTTP 503: busy 0"}
    assert found.e2e.count == 50
    assert found.good_share.value == pytest.approx(50 / 53)


def test_paths_and_reasons_are_shares_of_the_answers():
    samples = [sample(i, sent=i, path="pd") for i in range(3)]
    samples.append(sample(3, sent=3, path="aggregated", bypass="short"))
    found = figures(samples, Span(0, 10), NOTHING)
    assert (found.paths, found.bypasses, found.pools) == ({"pd": 0.75, "aggregated": 0.25}, {"short": 1}, {})


def test_too_few_requests_have_no_tail():
    found = figures(one_after_the_other(50), Span(0, 10), NOTHING)
    assert found.ttft.percentiles[50] is not None
    assert found.ttft.percentiles[99] is None


def test_without_any_answer_nothing_is_made_up():
    found = figures([], Span(0, 10), NOTHING)
    assert (found.requests, found.ttft.count, found.output_rate.value) == (0, 0, 0)
    assert math.isnan(found.ttft.mean.value)
    assert set(found.ttft.percentiles.values()) == {None}
    assert (found.good_share.low, found.good_share.high) == (0, 1)
    assert mean([1.0]).high == math.inf


def test_the_span_of_a_run_by_time_is_what_was_asked_for():
    assert span_of([], 5, 35) == Span(5, 35)


def test_the_span_of_a_run_by_number_ends_with_the_last_request_that_was_sent():
    assert span_of(one_after_the_other(100), 0, None) == Span(0, pytest.approx(19.8))
    assert span_of([sample(sent=0, total=4.0), sample(sent=0.1, total=4.0)], 0, None) == Span(0, pytest.approx(4.1))


def test_shares_of_all_stay_below_one():
    everybody = share([True] * 20)
    assert (everybody.value, everybody.high) == (1, 1)
    assert 0.8 < everybody.low < 1


def test_a_steady_run_has_nothing_to_say():
    random = np.random.default_rng(0)
    said = 0
    for _ in range(100):
        samples = [sample(i, sent=0.2 * i, total=0.2, ttft=0.1 * random.lognormal(0, 0.2)) for i in range(150)]
        said += bool([*unsteady(samples, Span(0, 30))])
    assert said <= 3


def test_waits_that_grow_are_said():
    samples = [sample(i, sent=0.2 * i, ttft=0.1 + 0.01 * i, total=0.3 + 0.01 * i) for i in range(100)]
    assert any("TTFT rose" in said and "lower the load" in said for said in unsteady(samples, Span(0, 20)))


def test_a_server_that_becomes_slower_is_said():
    fast = [sample(i, sent=0.2 * i, total=0.2) for i in range(50)]
    slow = [sample(i, sent=10 + 0.4 * i, total=0.4) for i in range(25)]
    assert any("50.0 output tokens a second in the first half" in said for said in unsteady(fast + slow, Span(0, 20)))
