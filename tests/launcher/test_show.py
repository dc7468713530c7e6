"""What people read while and after a deployment starts."""

import io

from rich.console import Console

from launcher import show
from launcher.console import LoadReporter
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.status import InstanceReport, StatusReport
from tests.launcher.builders import plan


def deployment(state, reason=None):
    decode = InstanceState("decode-0", "decode", "http://127.0.0.1:8100", state, reason=reason)
    return Deployment("demo", 1, 0.0, "mark", "http://127.0.0.1:8000", "m", state is State.READY, 10.0, (decode,))


def test_progress_is_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    reporter = LoadReporter(Console(file=out, width=200))
    reporter.stage("decode-0", 3)
    reporter.stage("proxy", 0)
    for state, reason in ((State.STARTING, None), (State.READY, None), (State.RESTARTING, "decode-0 died")):
        reporter.changed(deployment(state, reason))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert [line[:2] for line in lines] == [
        ["decode-0", "loading"],
        ["proxy", "starting"],
        ["decode-0", "ready"],
        ["decode-0", "restarting:"],
    ]


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
