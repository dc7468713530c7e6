"""Two samples become a point of the history."""

import asyncio
import json
from dataclasses import replace
from itertools import count

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.health.readings import Readings
from proxy.overview.history import History
from proxy.overview.point import Point, point
from proxy.overview.sample import Engine, Present, Sample
from proxy.overview.tally import merged, read, tally, written
from proxy.quantile import quantile
from proxy.topology import Role
from tests.proxy.conftest import eventually

NOTHING = Readings(
    *(1.0, 16, "auto", 0.0, None, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
)
"""Of an engine that was just started."""


def sample(clock: float, text: str = "", present: Present | None = None, **engines: Readings) -> Sample:
    """Of metrics in Prometheus's format, and of engines by role."""
    told = {f"{role}-0": Engine(Role(role), readings, clock) for role, readings in engines.items()}
    return Sample(1000 + clock, clock, tally(text_string_to_metric_families(text)), present or Present(), told)


def between(before: str, now: str) -> Point:
    """The point of two such texts, five seconds apart."""
    return point(sample(0, before), sample(5, now))


def meanwhile(before: dict, now: dict, role: str = "decode") -> Point:
    """The point of what one engine told twice, five seconds apart."""
    return point(sample(0, **{role: replace(NOTHING, **before)}), sample(5, **{role: replace(NOTHING, **now)}))


def requests(outcome: str, count: int, path: str = "pd", endpoint: str = "completions") -> str:
    labels = f'endpoint="{endpoint}",path="{path}",model="m",status="200",outcome="{outcome}"'
    return f"duet_requests_total{{{labels}}} {count}\n"


def buckets(name: str, counts: dict[str, int], labels: str = "") -> str:
    return "".join(f'{name}_bucket{{{labels}le="{bound}"}} {count}\n' for bound, count in counts.items())


def test_rates_are_what_came_by_the_seconds_between():
    shown = between(requests("ok", 100), requests("ok", 140) + requests("failed", 6) + requests("left", 4))
    assert (shown.at, shown.requests_per_second, shown.failed_per_second) == (1005, 10.0, pytest.approx(1.2))


def test_without_any_traffic_rates_are_zero_and_the_rest_is_unknown():
    shown = between("", "")
    assert (shown.requests_per_second, shown.failed_per_second) == (0, 0)
    assert {shown.ttft_p50, shown.tpot_p95, shown.acceptance_rate, shown.kv_cache_usage, shown.pd_share} == {None}
    assert {shown.output_tokens_per_second, shown.kv_received_share} == {None}
    assert shown.in_flight == shown.waiting == 0


def test_a_counter_that_begins_anew_counts_what_has_come_since():
    assert between(requests("ok", 1000), requests("ok", 10)).requests_per_second == 2


def test_a_series_that_vanishes_takes_nothing_away():
    assert between(requests("ok", 10) + requests("left", 7), requests("ok", 20)).requests_per_second == 2


def test_an_engine_that_appears_is_not_taken_to_have_generated_all_it_counts_within_one_interval():
    old = replace(NOTHING, generated=1e6)
    assert point(sample(0), sample(5, decode=old)).output_tokens_per_second is None
    both = sample(5, decode=replace(old, generated=1e6 + 50), aggregated=old)
    assert point(sample(0, decode=old), both).output_tokens_per_second == 10


def test_an_engines_rate_is_over_the_time_between_its_own_words():
    before, now = sample(0, decode=NOTHING), sample(5, decode=replace(NOTHING, generated=60))
    late = replace(now, engines={"decode-0": replace(now.engines["decode-0"], told_at=3)})
    assert point(before, late).output_tokens_per_second == 20
    silent = replace(now, engines={"decode-0": replace(now.engines["decode-0"], told_at=0)})
    assert point(before, silent).output_tokens_per_second is None


def test_of_an_engine_that_was_started_anew_what_came_since_is_told():
    assert meanwhile({"generated": 10}, {"generated": 25, "started": 2.0}).output_tokens_per_second == 5
    assert meanwhile({"generated": 1000}, {"generated": 25}).output_tokens_per_second == 5


def test_an_engine_that_is_gone_takes_nothing_away():
    before = sample(0, decode=replace(NOTHING, generated=9), aggregated=replace(NOTHING, generated=99))
    assert point(before, sample(5, decode=replace(NOTHING, generated=19))).output_tokens_per_second == 2


def test_output_tokens_are_those_of_the_engines_that_answer():
    assert meanwhile({}, {"generated": 25}, "aggregated").output_tokens_per_second == 5
    assert meanwhile({}, {"generated": 25}, "prefill").output_tokens_per_second is None


def test_times_are_estimated_as_prometheus_does_and_only_of_what_came_since():
    old = {"0.1": 900, "0.2": 900, "0.5": 900, "+Inf": 900}
    new = {"0.1": 900, "0.2": 910, "0.5": 918, "+Inf": 920}
    shown = between(buckets("duet_ttft_seconds", old), buckets("duet_ttft_seconds", new))
    assert shown.ttft_p50 == pytest.approx(0.2)
    assert shown.ttft_p95 == pytest.approx(0.5)  # above all bounds: the greatest of them
    assert between(buckets("duet_ttft_seconds", new), buckets("duet_ttft_seconds", new)).ttft_p50 is None


def test_events_are_no_tokens_where_tokens_are_known():
    name = "duet_time_per_output_token_seconds"
    exact = buckets(name, {"0.01": 10, "0.1": 10, "+Inf": 10}, 'counted="tokens",')
    coarse = buckets(name, {"0.01": 0, "0.1": 90, "+Inf": 90}, 'counted="events",')
    assert between("", exact + coarse).tpot_p95 == pytest.approx(0.0095)
    assert between("", coarse).tpot_p95 == pytest.approx(0.01 + 0.09 * 0.95)


def test_a_quantile_lies_within_its_bucket():
    counts = {0.1: 10.0, 0.2: 30.0, float("inf"): 30.0}
    assert quantile(0.5, counts) == pytest.approx(0.125)
    assert quantile(0.1, counts) == pytest.approx(0.03)
    assert quantile(0.5, {}) is None
    assert quantile(0.5, {0.1: 0.0, float("inf"): 4.0}) == 0.1


def test_acceptance_is_that_of_the_interval():
    before = {"drafts": 100, "draft_tokens": 300, "accepted": 290}
    shown = meanwhile(before, {"drafts": 110, "draft_tokens": 330, "accepted": 305})
    assert (shown.acceptance_rate, shown.mean_acceptance_length) == (0.5, 2.5)
    assert meanwhile(before, before).acceptance_rate is None


def test_the_share_that_was_received_is_that_of_decode():
    before, now = {"prompt_tokens": 100, "received": 100}, {"prompt_tokens": 200, "received": 175}
    assert meanwhile(before, now).kv_received_share == 0.75
    assert meanwhile(before, now, "prefill").kv_received_share is None
    assert meanwhile({"prompt_tokens": 100}, {"prompt_tokens": 200}).kv_received_share is None


def test_of_the_requests_on_routes_that_generate_the_share_of_pd_is_told():
    now = requests("ok", 9) + requests("ok", 1, "aggregated") + requests("ok", 90, "aggregated", "other")
    assert between("", now + requests("failed", 5, "none")).pd_share == 0.9


def test_the_fullest_cache_and_all_that_wait_are_told():
    engines = {"prefill": replace(NOTHING, usage=0.7, waiting=1), "decode": replace(NOTHING, usage=0.2, waiting=2)}
    shown = point(sample(0), sample(5, "", Present(8, 2), **engines))
    assert (shown.kv_cache_usage, shown.waiting, shown.in_flight) == (0.7, 5, 8)


def test_what_processes_note_for_each_other_is_summed_up():
    text = requests("ok", 3) + buckets("duet_ttft_seconds", {"0.1": 1, "+Inf": 2})
    one = tally(text_string_to_metric_families(text))
    noted = read(json.loads(json.dumps(written(one))))
    assert noted == one
    both = point(sample(0), replace(sample(5), counts=merged([one, noted])))
    assert (both.requests_per_second, both.ttft_p50) == (1.2, pytest.approx(0.1))


def test_the_history_begins_with_the_second_sample_and_has_an_end():
    clock = count()
    history = History(lambda: sample(now := next(clock), requests("ok", 7 * now)))
    history.sample()
    assert history.points == ()
    for _ in range(130):
        history.sample()
    assert [point.requests_per_second for point in history.points] == [7.0] * 120
    assert history.points[-1].at == 1130


async def test_a_sample_that_fails_ends_nothing(caplog):
    def fails() -> Sample:
        raise OSError("no such folder")

    running = asyncio.create_task(History(fails, interval=0).run())

    async def is_told() -> bool:
        await asyncio.sleep(0)
        return "sampling the metrics failed" in caplog.text

    await eventually(is_told, True)
    assert not running.done()
    running.cancel()
    assert caplog.text.count("sampling the metrics failed") == 1
