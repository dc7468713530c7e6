"""What people read while and after a deployment starts."""

import io
import re
import time
from dataclasses import replace

from rich.console import Console

from launcher import show
from launcher.console import LoadReporter
from launcher.loading import Loading
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.status import InstanceReport, StatusReport
from tests.launcher.builders import plan


def deployment(state, reason=None, **more):
    decode = InstanceState("decode-0", "decode", "http://127.0.0.1:8100", state, reason=reason, **more)
    return Deployment("demo", 1, 0.0, "mark", "http://127.0.0.1:8000", "m", state is State.READY, 10.0, (decode,))


def test_progress_is_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    reporter = LoadReporter(Console(file=out, width=200))
    weights = Loading("loading weights", 3, 7)
    for state, more in (
        (State.WAITING, {"waits_for": "prefill-0 on GPU-1"}),
        (State.STARTING, {"loading": Loading("importing vLLM", 0, 7)}),
        (State.STARTING, {"loading": replace(weights, done=1, of=5)}),
        (State.STARTING, {"loading": replace(weights, done=2, of=5)}),
        (State.READY, {}),
        (State.RESTARTING, {"reason": "decode-0 died"}),
    ):
        reporter.changed(deployment(state, **more))
    lines = [re.sub(r" \(\d+ s\)", "", line).split(maxsplit=1) for line in out.getvalue().splitlines()]
    assert lines == [
        ["decode-0", "waits for prefill-0 on GPU-1"],
        ["decode-0", "importing vLLM"],
        ["decode-0", "loading weights, 1 of 5 (20%)"],
        ["decode-0", "ready"],
        ["decode-0", "restarting: decode-0 died"],
    ]


def test_progress_is_bars_on_a_terminal():
    out = io.StringIO()
    reporter = LoadReporter(Console(file=out, width=200, force_terminal=True))
    for done in (1, 2):
        reporter.changed(deployment(State.STARTING, loading=Loading("loading weights", 3, 7, done, 5)))
    reporter.close()
    assert "loading weights, 2 of 5 (40%)" in out.getvalue()


def test_a_start_goes_from_nothing_to_all_of_it():
    assert Loading("importing vLLM", 0, 7).fraction == 0.0
    assert Loading("loading weights", 3, 7, 2, 4).fraction == 0.5


def test_the_address_comes_with_a_request_to_paste():
    out = io.StringIO()
    show.address(Console(file=out, width=80), plan("demo", "proxy.host=0.0.0.0"))
    assert "curl http://127.0.0.1:8000/v1/chat/completions" in out.getvalue()
    assert '"model": "smollm2"' in out.getvalue()


def test_status_lists_each_instance(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    broken = InstanceReport("decode-0", "decode", "", 8101, State.FAILED, "down", None, None, 2, "crash loop: [x] died")
    show.status(StatusReport(False, "", "demo", "http://a", "m", 7, (broken,)), as_json=False)
    out = capsys.readouterr().out
    assert "profile demo at http://a (model m), launcher pid 7" in out
    for part in ("decode-0", "8101", "failed", "down", "crash loop: [x] died"):
        assert part in out


def test_status_tells_how_far_a_start_is_and_who_waits_for_whom(capsys):
    loads = InstanceReport(
        *("prefill-0", "prefill", "", 8100, State.STARTING, "does not listen", 7, time.time() - 35, 0, None),
        loading=Loading("loading weights", 3, 7, 2, 5),
        start_budget=600.0,
    )
    waits = InstanceReport(
        *("decode-0", "decode", "", 8101, State.WAITING, "down", None, None, 0, None), waits_for="prefill-0 on GPU-1"
    )
    show.status(StatusReport(False, "", "demo", "http://a", "m", 7, (loads, waits)), as_json=False)
    out = capsys.readouterr().out
    assert "loading weights, 2 of 5 (40%); 35 s of 600 s" in out
    assert "waits for prefill-0 on GPU-1" in out
