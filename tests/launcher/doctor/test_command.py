"""`launcher doctor` as people and programs run it."""

import json
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from launcher.doctor import report
from launcher.doctor.runbook import page
from launcher.doctor.sight import Sight

ROOT = Path(__file__).parents[3]
RUNBOOK = ROOT / "docs" / "runbook.md"


def test_the_runbook_is_what_the_doctor_knows():
    made = page()
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        RUNBOOK.write_text(made)
    assert made == RUNBOOK.read_text()


def test_a_deployment_that_is_well_is_called_healthy_and_one_whose_engine_stops_is_not(launch, command):
    running = launch()
    running.wait_ready()
    well = command("doctor", "--window", "0", "--output", "json")
    document = json.loads(well.stdout)
    about_the_machine = {"cpu-overcommitted", "host-memory-low", "disk-almost-full"}
    assert {each["id"] for each in document["findings"]} <= about_the_machine
    assert well.returncode == (1 if document["findings"] else 0)
    assert document["not_seen"] == []

    os.kill(running.instance("decode-0")["pid"], signal.SIGSTOP)
    sick = []

    def is_noticed() -> bool:
        sick.append(command("doctor", "--window", "0"))
        return "engine-down" in sick[-1].stdout

    running.wait(is_noticed)
    assert sick[-1].returncode == 1
    assert "decode-0: no answer in time" in sick[-1].stdout


def test_a_log_that_cannot_be_read_is_told(launch, command, folder: Path):
    launch().wait_ready()
    log = folder / "run" / "logs" / "decode-0.log"
    log.unlink()
    log.mkdir()
    told = json.loads(command("doctor", "--window", "0", "--output", "json").stdout)
    assert told["not_seen"] == [f"the log of decode-0, {log}, cannot be read: Is a directory"]


def test_where_nothing_runs_that_is_said(command):
    done = command("doctor")
    assert done.returncode == 4
    assert "nothing runs in" in done.stderr


def test_a_proxy_that_does_not_answer_is_a_finding(command):
    done = command("doctor", "--proxy", "http://127.0.0.1:9", "--output", "json")
    assert done.returncode == 1
    assert [each["id"] for each in json.loads(done.stdout)["findings"]] == ["target-missing"]


def test_a_deployment_of_which_nothing_is_seen_is_not_called_healthy(capsys):
    starting = Sight(not_seen=("the proxy does not answer",))
    assert not report.is_healthy((), starting)
    report.text(Console(width=200), (), starting)
    assert "not healthy yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://x",
        "http://",
        "http://x:99999",
        "http://x:port",
        "http://[::1",
        "http://xn--",
        "http://x?y",
    ],
)
def test_an_address_that_is_none_is_refused(command, url: str):
    done = command("doctor", "--proxy", url)
    assert done.returncode == 2
    assert "http://127.0.0.1:8000" in done.stderr


def test_a_password_in_an_address_is_refused_and_not_shown(command):
    done = command("doctor", "--proxy", "http://me:hidden@127.0.0.1:8000")
    assert done.returncode == 2
    assert "--key" in done.stderr
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize("key", ["", "schl\N{LATIN SMALL LETTER U WITH DIAERESIS}ssel", "hidden\nx: y"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(command, key: str):
    done = command("doctor", "--proxy", "http://127.0.0.1:9", "--key", key)
    assert done.returncode == 2
    assert "--key is empty" in done.stderr
    assert not key or key.split()[0] not in done.stdout + done.stderr
