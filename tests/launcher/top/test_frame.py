"""What of a deployment fits on a terminal."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from launcher.top.frame import Screen, frame
from launcher.top.overview import Failure, History, Instance, Overview, Pair, Point, Proof
from launcher.top.sparkline import sparkline

NOW = 1_700_000_000.0
ENGINE = Instance("decode-0", "decode", True, False, "closed", 2, "", running=1, waiting=0, kv_cache_usage=0.4)
PAIR = Pair("prefill-0", "decode-0", "proven", "", Proof("proven", NOW - 65, 144, 4e9))
FAILURE = Failure(NOW - 5, "mine-1234", 502, "failed", "decode-0: the engine answered 500")
POINT = Point(NOW - 5, 2.0, 0.0, 50.0, 0.03, 0.25, 0.6, 0.9, 1.0, 3, 0)
WELL = Overview(NOW, "ready", (), (ENGINE,), (PAIR,), (), History(5, (POINT,)))
SMALL = Screen(80, 24)


def shown(overview: Overview | None, screen: Screen = SMALL, problem: str = "") -> str:
    console = Console(file=StringIO(), width=screen.width, force_terminal=False)
    console.print(frame("fakes at http://127.0.0.1:8000", overview, problem, screen))
    return console.file.getvalue()


def test_state_rates_instances_and_pairs_are_shown():
    text = shown(WELL)
    assert "READY" in text
    assert "Last minute: Requests 2/s   Failed 0/s   Output 50 tokens/s" in text
    assert "Now:         In flight 3   Waiting 0   Last TTFT p95 250 ms  p50 30 ms  █" in text
    assert "KV received 90%   Acceptance 60%" in text
    assert text.splitlines()[7].split()[:4] == ["decode-0", "healthy", "2", "1"]
    assert ["prefill-0", "decode-0", "proven", "1m05s", "ago", "144", "4,000", "MB/s"] in [
        line.split() for line in text.splitlines()
    ]
    assert "FAILED" not in text


def test_reasons_and_failures_are_shown():
    text = shown(replace(WELL, health="degraded", reasons=("a", "b", "c", "d", "e"), failures=(FAILURE,)))
    assert "DEGRADED" in text
    assert "  and 2 more" in text
    assert "502 failed  mine-1234  decode-0: the engine answered 500" in text


def test_what_is_not_known_is_a_dash():
    text = shown(replace(WELL, history=History(5, ()), instances=(replace(ENGINE, running=None, kv_cache_usage=None),)))
    assert "Requests -/s" in text
    assert "TTFT p95 -  p50 -" in text
    assert text.splitlines()[7].split()[2:6] == ["2", "-", "0", "-"]


def test_before_the_first_answer_only_the_problem_is_known():
    assert (
        shown(None, problem="For 0m04s: the proxy does not answer").splitlines()[1].startswith("For 0m04s: the proxy")
    )


@pytest.mark.parametrize(
    ("engine", "state"),
    [
        (replace(ENGINE, frozen=True, healthy=False), "frozen"),
        (replace(ENGINE, healthy=False, reason="its health check fails"), "its health check fails"),
        (replace(ENGINE, draining=True), "drained"),
        (replace(ENGINE, breaker="open"), "kept away from"),
        (replace(ENGINE, reason="none of its pairs works"), "suspect"),
    ],
)
def test_an_instance_that_does_not_serve_says_why(engine, state):
    assert f"decode-0  {state}" in shown(replace(WELL, instances=(engine,)))


def test_the_worst_pairs_come_first_and_the_rest_is_counted():
    pairs = [replace(PAIR, prefill=f"prefill-{p}", decode=f"decode-{d}") for p in range(12) for d in range(12)]
    pairs[100] = replace(pairs[100], standing="out", reason="recomputed")
    engines = tuple(replace(ENGINE, name=f"decode-{number}") for number in range(24))
    full = replace(WELL, instances=engines, pairs=tuple(pairs), failures=(FAILURE,) * 50)
    text = shown(full)
    lines = text.splitlines()
    assert len(lines) <= SMALL.height
    first = lines[next(number for number, line in enumerate(lines) if line.startswith("PREFILL")) + 1]
    assert first.split()[:3] == ["prefill-8", "decode-4", "out"]
    assert text.count(" more\n") == 3
    assert "mine-1234" in text
    assert shown(full, Screen(80, None)).count("proven") == 143


@pytest.mark.parametrize("height", range(1, 30))
@pytest.mark.parametrize("width", [40, 80, 132])
def test_it_fits_on_any_terminal(width, height):
    overview = replace(WELL, reasons=("r" * 200,) * 5, failures=(FAILURE,) * 50, pairs=(PAIR,) * 9)
    lines = shown(overview, Screen(width, height)).splitlines()
    assert len(lines) <= max(height, 10)
    assert all(len(line) <= width for line in lines)


def test_a_narrow_terminal_does_without_columns_and_not_without_names():
    text = shown(WELL, Screen(40, 24))
    assert "decode-0  healthy" in text
    assert "RUNNING" not in text
    assert "prefill-0  decode-0  proven" in text


@pytest.mark.parametrize(
    ("values", "drawn"),
    [([], ""), ([0.0, 0.0], "▁▁"), ([1.0, 8.0, None, 4.5], "▂█ ▅"), ([None], " ")],
)
def test_a_sparkline_has_a_bar_for_each_value_and_gaps(values, drawn):
    assert sparkline(values, 10) == drawn


def test_only_the_last_values_are_drawn_and_ascii_where_that_is_all_there_is():
    assert sparkline([9.0, 1.0, 2.0], 2) == "▅█"
    assert sparkline([1.0], 0) == ""
    assert sparkline([0.0, 6.0], 5, plain=True) == "_#"
