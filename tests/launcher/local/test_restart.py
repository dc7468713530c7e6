"""`launcher restart`: instances of a running deployment are started anew, and no request is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import PATIENCE, REPOSITORY, Launched, survivors
from tests.launcher.local.test_start import ask


@contextmanager
def asking(port: int) -> Iterator[list[httpx.Response]]:
    """Requests without a pause while the block runs; their answers."""
    answers: list[httpx.Response] = []
    enough = threading.Event()

    def work() -> None:
        with httpx.Client(trust_env=False, timeout=20) as client:
            while not enough.is_set():
                body = {"model": "fake", "prompt": f"one two {len(answers)}", "max_tokens": 8}
                answers.append(client.post(f"http://127.0.0.1:{port}/v1/completions", json=body))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def test_with_two_decodes_no_request_is_lost_while_each_is_restarted(launch: Launch, command, proxy_port: int):
    running = launch("--set", "roles.decode.replicas=2")
    running.wait_ready()
    before = {name: running.instance(name)["pid"] for name in ("decode-0", "decode-1", "prefill-0")}

    with asking(proxy_port) as answers:
        done = command("restart", "decode-0", "decode-1")

    assert done.returncode == 0, done.stderr
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-duet-path"] for answer in answers} == {"pd"}
    for name in ("decode-0", "decode-1"):
        now = running.instance(name)
        assert (now["state"], now["restarts"]) == ("ready", 1)
        assert now["pid"] != before[name]
        assert f"{name}: its pairs are proven" in done.stdout
    assert running.instance("prefill-0")["pid"] == before["prefill-0"]
    assert {answer.headers["x-duet-decode"] for answer in answers[-20:]} <= {"decode-0", "decode-1"}


def test_the_only_prefill_is_replaced_and_its_pair_works_again(launch: Launch, command, proxy_port: int):
    running = launch()
    running.wait_ready()
    with asking(proxy_port) as answers:
        done = command("restart", "prefill-0")
    assert done.returncode == 0, done.stderr
    assert {answer.status_code for answer in answers} == {200}
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"
    assert "nobody else can answer" not in done.stdout


def test_that_nobody_else_can_answer_is_said(launch: Launch, command):
    launch().wait_ready()
    done = command("restart", "decode-0")
    assert done.returncode == 0, done.stderr
    assert "decode-0: nobody else can answer: requests get 503 until it is back" in done.stdout


def test_an_instance_that_is_not_drained_in_time_runs_on_in_traffic(
    launch: Launch, command, folder: Path, proxy_port: int
):
    kept = folder / "kept"
    kept.touch()
    running = launch(keeps_kv=str(kept))
    running.wait_ready()
    pid = running.instance("prefill-0")["pid"]

    late = command("restart", "prefill-0", "--within", "0")

    assert late.returncode == 1
    assert "not drained after 0 s: it runs on" in late.stderr
    assert running.instance("prefill-0")["pid"] == pid
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"
    assert command("restart", "prefill-0", "--no-drain").returncode == 0
    assert running.instance("prefill-0")["pid"] != pid


def test_an_instance_that_was_drained_before_stays_drained(launch: Launch, command, proxy_port: int):
    launch().wait_ready()
    command("drain", "prefill-0")
    assert command("restart", "prefill-0").returncode == 0
    assert ask(proxy_port)[0]["x-duet-bypass"] == "no_prefill"


def test_the_proxy_is_restarted(launch: Launch, command, proxy_port: int):
    running = launch("--detach")
    assert running.result() == 0, running.output
    before = running.instance("proxy")["pid"]
    done = command("restart", "proxy")
    try:
        assert done.returncode == 0, done.stderr
        assert running.instance("proxy")["pid"] != before
        assert ask(proxy_port)[0]["x-duet-path"] == "pd"
    finally:
        assert command("down").returncode == 0


def test_an_instance_in_a_crash_loop_is_brought_back(launch: Launch, command, folder: Path, proxy_port: int):
    gate = folder / "gate"
    gate.touch()
    running = launch("--set", f'roles.prefill.env.FAKE_ENGINE_GATE="{gate}"')
    running.wait_ready()
    crash_until_failed(running, gate)

    gate.touch()
    done = command("restart", "prefill-0")

    assert done.returncode == 0, done.stderr
    assert running.instance("prefill-0")["state"] == "ready"
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"


def crash_until_failed(running: Launched, gate: Path) -> None:
    gate.unlink()
    os.kill(running.instance("prefill-0")["pid"], signal.SIGKILL)
    for restarts in (1, 2):
        running.wait(lambda count=restarts: running.instance("prefill-0")["restarts"] == count)
        running.wait(lambda: running.instance("prefill-0")["state"] in ("starting", "failed"))
        gate.write_text("ERROR by the test\n")
    running.wait(lambda: running.instance("prefill-0")["state"] == "failed")


def test_one_that_dies_at_its_start_is_reported_and_tried_again(launch: Launch, command, folder: Path, proxy_port: int):
    gate = folder / "gate"
    gate.touch()
    running = launch("--set", f'roles.prefill.env.FAKE_ENGINE_GATE="{gate}"')
    running.wait_ready()
    gate.write_text("ERROR by the test\n")

    done = command("restart", "prefill-0")

    assert done.returncode == 5
    assert "prefill-0 ended with code 1" in done.stderr
    assert "| ERROR by the test" in done.stderr
    gate.touch()
    running.wait(lambda: running.instance("prefill-0")["state"] == "ready")
    running.wait(lambda: ask(proxy_port)[0]["x-duet-path"] == "pd")


def test_two_restarts_do_not_meet(launch: Launch, command, folder: Path):
    kept = folder / "kept"
    kept.touch()
    launch(keeps_kv=str(kept)).wait_ready()
    first = subprocess.Popen(
        [sys.executable, "-P", "-m", "launcher", "restart", "prefill-0", "--run-dir", str(folder / "run")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert "waits for decode" in first.stdout.readline()
        second = command("restart", "decode-0")
        assert second.returncode == 4
        assert "another `launcher restart` is at work" in second.stderr
        kept.unlink()
        assert first.wait(PATIENCE) == 0
    finally:
        first.kill()
        first.communicate()


def test_a_command_that_is_interrupted_leaves_the_instance_in_traffic(launch: Launch, folder: Path, proxy_port: int):
    kept = folder / "kept"
    kept.touch()
    launch(keeps_kv=str(kept)).wait_ready()
    command = subprocess.Popen(
        [sys.executable, "-P", "-m", "launcher", "restart", "prefill-0", "--run-dir", str(folder / "run")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert "waits for decode" in command.stdout.readline()
        command.send_signal(signal.SIGINT)
        assert command.wait(PATIENCE) == 130
    finally:
        command.kill()
        command.communicate()
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"


@pytest.mark.parametrize(
    ("arguments", "message"), [(("decode-7",), "no instance decode-7; there are: prefill-0, decode-0, proxy")]
)
def test_an_unknown_instance_is_named_with_those_there_are(launch: Launch, command, arguments, message: str):
    launch().wait_ready()
    refused = command("restart", *arguments)
    assert refused.returncode == 4
    assert message in refused.stderr


def test_without_a_launcher_nothing_is_restarted(launch: Launch, command):
    running = launch()
    running.wait_ready()
    family = running.family()
    running.send(signal.SIGKILL)
    assert not survivors(family)
    refused = command("restart", "decode-0")
    assert refused.returncode == 4
    assert "nothing runs in" in refused.stderr


def test_a_launcher_that_ends_meanwhile_is_told(launch: Launch, command, folder: Path):
    gate = folder / "gate"
    gate.touch()
    running = launch("--set", f'roles.prefill.env.FAKE_ENGINE_GATE="{gate}"')
    running.wait_ready()
    gate.unlink()
    ending = threading.Thread(
        target=lambda: (
            running.wait(lambda: running.instance("prefill-0")["state"] == "starting"),
            running.send(signal.SIGINT),
        )
    )
    ending.start()
    done = command("restart", "prefill-0", "--no-drain")
    ending.join()
    assert done.returncode == 4
    assert "ended meanwhile" in done.stderr
    assert running.result() == 0


def test_a_pair_that_does_not_work_afterwards_is_exit_code_8(launch: Launch, command, folder: Path):
    launch("--set", 'roles.decode.env.FAKE_ENGINE_RECOMPUTES="1"').wait_ready()
    done = command("restart", "decode-0")
    assert done.returncode == 8
    assert "decode-0 runs again, but not all of its pairs: prefill-0 to decode-0: decode computed" in done.stderr
    assert json.loads(command("status", "--output", "json").stdout)["healthy"]
