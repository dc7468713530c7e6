"""What happened between two looks at counters, gauges and histograms."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.advice.measure import idle, measured, requests
from launcher.advice.metric_names import COUNTERS, GAUGES
from launcher.advice.window import Window, quantile, read
from tests.launcher.advice.exposition import histogram, metrics

START = "process_start_time_seconds"


def window(role: str, *texts: str | None) -> Window:
    """Of looks that found these texts; ``None`` for no answer."""
    made = Window(role)
    for text in texts:
        made.add(None if text is None else read(text))
    return made


def test_only_the_increase_counts():
    made = window("decode", *(metrics({"vllm:num_preemptions_total": count}) for count in (100, 103, 110)))
    assert made.increase("vllm:num_preemptions_total") == 10


def test_a_counter_that_begins_again_goes_on_from_nothing():
    made = window("decode", *(metrics({"vllm:num_preemptions_total": count}) for count in (100, 103, 2, 5)))
    assert made.increase("vllm:num_preemptions_total") == 3 + 2 + 3
    assert made.restarts == 1


def test_a_restart_is_seen_even_when_the_new_process_has_counted_more():
    looks = ((1.0, 3), (2.0, 10))
    made = window("decode", *(f"{START} {start}\n" + metrics({"vllm:num_preemptions_total": n}) for start, n in looks))
    assert (made.increase("vllm:num_preemptions_total"), made.restarts) == (10, 1)


def test_a_counter_that_appears_in_the_window_began_at_nothing():
    made = window("proxy", metrics(), metrics({'duet_requests_total{path="pd"}': 4}))
    assert made.increase("duet_requests_total", path="pd") == 4
    assert made.increase("duet_requests_total", path="aggregated") is None


def test_looks_that_are_not_answered_lose_nothing_but_gauges():
    made = window(
        "decode", metrics({"vllm:num_preemptions_total": 1}), None, metrics({"vllm:num_preemptions_total": 4})
    )
    assert (made.increase("vllm:num_preemptions_total"), made.missed) == (3, 1)


def test_an_engine_of_an_older_version_is_read_by_todays_names():
    old = read(
        metrics(
            {"vllm:gpu_cache_usage_perc": 0.5, "vllm:gpu_prefix_cache_hits_total": 3},
            histogram("vllm:time_per_output_token_seconds", {0.1: 4}),
        )
    )
    new = read(
        metrics(
            {"vllm:kv_cache_usage_perc": 0.5, "vllm:prefix_cache_hits_total": 3},
            histogram("vllm:inter_token_latency_seconds", {0.1: 4}),
        )
    )
    assert old == new


def test_what_is_shown_under_both_names_counts_once():
    both = read(metrics({"vllm:gpu_prefix_cache_hits_total": 2, "vllm:prefix_cache_hits_total": 3}))
    assert both.sum("vllm:prefix_cache_hits_total") == 3


@pytest.mark.parametrize(
    ("looks", "acceptance", "length"),
    [
        (((10, 40, 20), (20, 80, 50)), 30 / 40, 1 + 30 / 10),
        (((10, 40, 20), (2, 8, 4)), 4 / 8, 1 + 4 / 2),
        (((10, 40, 20), (10, 40, 20)), None, None),
    ],
    ids=["in the window", "the engine was started anew", "nothing was drafted"],
)
def test_acceptance_is_that_of_the_window(looks, acceptance, length):
    kinds = ("drafts", "draft_tokens", "accepted_tokens")
    texts = (
        metrics({f"vllm:spec_decode_num_{k}_total": n for k, n in zip(kinds, look, strict=True)}) for look in looks
    )
    facts = measured([window("decode", *texts)], 60)
    assert (facts["acceptance"], facts["acceptance_length"]) == (acceptance, length)


def test_values_that_are_no_numbers_are_left_out():
    assert read(metrics({"vllm:kv_cache_usage_perc": math.nan})).values == {}


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 0.0), (0.25, 5.0), (0.5, 10.0), (0.75, 55.0), (0.95, 91.0), (1.0, 100.0)]
)
def test_a_quantile_lies_evenly_within_its_bucket(share, expected):
    assert quantile(share, [{10.0: 50.0, 100.0: 100.0, math.inf: 100.0}]) == pytest.approx(expected)


def test_above_the_last_bound_nothing_but_the_bound_is_known():
    assert quantile(0.95, [{10.0: 50.0, math.inf: 100.0}]) == 10.0
    assert quantile(0.5, [{math.inf: 100.0}]) is None


def test_without_observations_there_is_no_quantile():
    assert quantile(0.5, []) is None
    assert quantile(0.5, [{10.0: 0.0, math.inf: 0.0}]) is None


def test_histograms_with_other_bounds_are_added_where_they_agree():
    parts = [{1.0: 2.0, 2.0: 4.0, math.inf: 4.0}, {2.0: 0.0, 4.0: 4.0, math.inf: 4.0}]
    assert quantile(0.5, parts) == 2.0


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(0.001, 99.0), min_size=1, max_size=50), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_in_the_bucket_of_the_true_one(values, share):
    bounds = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0, math.inf]
    estimated = quantile(share, [{bound: float(sum(value <= bound for value in values)) for bound in bounds}])
    true = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    upper = next(bound for bound in bounds if true <= bound)
    assert estimated is not None
    assert max([0.0, *(bound for bound in bounds if bound < upper)]) <= estimated <= upper


def test_a_pair_is_measured_where_each_thing_happens():
    prefill = window(
        "prefill",
        metrics(
            {"vllm:prefix_cache_queries_total": 0, "vllm:prefix_cache_hits_total": 0, "vllm:num_requests_running": 1}
        ),
        metrics(
            {
                "vllm:prefix_cache_queries_total": 100,
                "vllm:prefix_cache_hits_total": 80,
                "vllm:num_requests_running": 3,
            },
            histogram("vllm:request_prefill_time_seconds", {0.1: 0, 0.2: 10}),
        ),
    )
    decode = window(
        "decode",
        metrics(
            {
                "vllm:prefix_cache_queries_total": 0,
                "vllm:num_requests_running": 4,
                "vllm:num_requests_waiting": 5,
                'vllm:num_requests_waiting_by_reason{reason="capacity"}': 1,
                'vllm:num_requests_waiting_by_reason{reason="deferred"}': 4,
                "vllm:kv_cache_usage_perc": 0.5,
            },
        ),
        metrics(
            {
                "vllm:prefix_cache_queries_total": 100,
                "vllm:num_requests_running": 6,
                "vllm:num_requests_waiting": 5,
                'vllm:num_requests_waiting_by_reason{reason="capacity"}': 2,
                "vllm:kv_cache_usage_perc": 0.25,
                "vllm:spec_decode_num_drafts_total": 10,
                "vllm:spec_decode_num_draft_tokens_total": 40,
                "vllm:spec_decode_num_accepted_tokens_total": 30,
                'vllm:prompt_tokens_by_source_total{source="external_kv_transfer"}': 1000,
                'vllm:prompt_tokens_by_source_total{source="local_compute"}': 10,
                "vllm:nixl_bytes_transferred_sum": 4_000_000,
                "vllm:nixl_xfer_time_seconds_sum": 0.002,
                "vllm:num_preemptions_total": 1,
            },
        ),
    )
    proxy = window(
        "proxy",
        "",
        'duet_requests_total{path="pd",status="200"} 15.0\n'
        'duet_requests_total{path="aggregated",status="200"} 5.0\n'
        'duet_requests_total{path="none",status="503"} 5.0\n',
    )
    facts = measured([prefill, decode, proxy], 10.0)
    expected = {
        "requests": 25,
        "request_rate": 2.5,
        "pd_share": 0.75,
        "prefix_hit_rate": 0.8,
        "batch": 5,
        "concurrency": 2 + 10,
        "waiting": 1.5,
        "kv_cache_usage": 0.5,
        "preempted_share": 0.04,
        "acceptance": 0.75,
        "acceptance_length": 4,
        "kv_bytes_per_token": 4000,
        "interconnect": 2,
        "prefill_time_p50": 0.15,
        "ttft_p95": None,
    }
    assert {name: facts[name] for name in expected} == pytest.approx(expected)


def test_one_engine_alone_tells_its_own_ttft_and_count():
    made = window(
        "aggregated",
        metrics({"vllm:request_success_total": 1}),
        metrics({"vllm:request_success_total": 3}, histogram("vllm:time_to_first_token_seconds", {0.1: 0, 0.2: 2})),
    )
    assert requests([made]) == 2
    assert measured([made], 1.0)["ttft_p50"] == pytest.approx(0.15)


def test_a_share_of_two_counters_that_were_not_read_at_once_is_no_more_than_all():
    made = window(
        "aggregated",
        metrics(),
        metrics({"vllm:prefix_cache_queries_total": 10, "vllm:prefix_cache_hits_total": 11}),
    )
    assert measured([made], 1.0)["prefix_hit_rate"] == 1


def test_an_engine_that_tells_nothing_leaves_everything_unknown():
    assert set(measured([window("aggregated", ""), window("proxy", None)], 1.0).values()) == {None}


@pytest.mark.parametrize(("ended", "in_flight", "nothing"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_there_is_nothing_to_judge_when_nothing_ended_and_nothing_is_on_its_way(ended, in_flight, nothing):
    requests_of = 'duet_requests_total{{path="pd"}} {}\nduet_in_flight{{engine="decode-0"}} {}\n'
    assert idle([window("proxy", requests_of.format(4, 0), requests_of.format(4 + ended, in_flight))]) is nothing


@pytest.mark.parametrize("bound", ["x", "", "NaN", "-Inf"])
@pytest.mark.parametrize("value", ["5", "-5", "1e308", "NaN", "+Inf"])
def test_what_no_engine_can_mean_is_passed_over(bound, value):
    names = sorted(COUNTERS | GAUGES)
    text = "".join(
        f'{name}{{le="{bound}"}} {value}\n{name}{{le="+Inf"}} {value}\n'
        if name.endswith("_bucket")
        else f"{name} {value}\n"
        for name in names
    )
    watched = Window("aggregated")
    for look in (text.replace(value, "0"), text):
        watched.add(read(look))
    assert all(found is None or 0 <= found < math.inf for found in measured([watched], 5.0).values())
