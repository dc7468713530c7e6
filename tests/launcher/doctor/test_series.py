"""Pages of metrics, also odd ones."""

import math

import pytest

from launcher.doctor.examine import examine
from launcher.doctor.series import Series, read
from launcher.doctor.sight import Sight


def test_a_counter_counts_from_the_first_look_and_anew_when_its_process_does():
    series = Series(
        read('a_total{x="1"} 7\na_total{x="2"} 3\na_total{x="3"} 1\n'), read('a_total{x="1"} 5\na_total{x="2"} 9\n')
    )
    assert series.counted_by("a_total", "x") == {("1",): 2, ("2",): 3, ("3",): 1}
    assert series.counted("a_total", x="1") == 2
    assert series.of(x="2").counted("a_total") == 3


def test_without_a_first_look_all_that_was_counted_counts():
    assert Series(read("a_total 7\n")).counted("a_total") == 7


def test_what_is_not_there_is_unknown_as_a_gauge_and_nothing_as_a_counter():
    series = Series()
    assert (series.now("g"), series.most("g"), series.by("g", "x"), series.counted("a_total")) == (None, None, {}, 0)


def test_buckets_without_a_bound_are_left_out():
    page = 'h_bucket{le="0.5"} 1\nh_bucket 4\nh_bucket{le="x"} 5\nh_bucket{le="+Inf"} 2\n'
    assert Series(read(page)).buckets("h") == {0.5: 1, math.inf: 2}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e308"])
def test_nonsense_of_an_engine_stops_no_check(value):
    names = ("kv_cache_usage_ratio", "preemptions_total", "kv_expired_total", "draft_tokens_total", "requests_waiting")
    lines = [f'duet_engine_{name}{{engine="e"}} {value}\n' for name in names]
    buckets = [
        f'duet_engine_kv_transfer_seconds_bucket{{engine="e",le="{le}"}} {value}\n' for le in ("0.1", "+Inf", "x")
    ]
    alerts = "".join(
        f'duet_alert_threshold{{alert="{each}"}} 0.1\n' for each in ("kv_transfer", "kv_cache_usage", "acceptance")
    )
    engines = Series(read('duet_engine_up{engine="e"} 1\n' + "".join(lines + buckets)))
    examine(Sight(proxy=Series(read(alerts)), engines=engines))
