"""Starting: readiness, the ways to fail, the messages."""

import json
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import REPOSITORY, survivors


def ask(port: int) -> tuple[dict[str, str], dict]:
    body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": "one two three"}]}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return dict(response.headers), json.load(response)


def test_a_pair_answers_through_the_proxy_and_status_shows_it(launch: Launch, command, proxy_port: int):
    running = launch()
    running.wait_ready()

    headers, answer = ask(proxy_port)

    assert headers["x-duet-path"] == "pd"
    assert (headers["x-duet-prefill"], headers["x-duet-decode"]) == ("prefill-0", "decode-0")
    assert answer["choices"][0]["message"]["content"]
    report = command("status", "--output", "json")
    status = json.loads(report.stdout)
    assert (report.returncode, status["healthy"]) == (0, True)
    assert [(i["name"], i["role"], i["state"], i["health"]) for i in status["instances"]] == [
        ("prefill-0", "prefill", "ready", "ok"),
        ("decode-0", "decode", "ready", "ok"),
        ("proxy", "proxy", "ready", "ok"),
    ]
    assert all(psutil.pid_exists(i["pid"]) and i["port"] for i in status["instances"])
    assert f"Serving at http://127.0.0.1:{proxy_port}" in running.output


def test_logs_name_their_instance(launch: Launch, command):
    launch().wait_ready()

    one, all_of_them = command("logs", "decode-0"), command("logs", "--output", "json")

    assert "decode-0     | INFO: fake decode engine listens" in one.stdout
    assert {json.loads(line)["instance"] for line in all_of_them.stdout.splitlines()} >= {"prefill-0", "decode-0"}


def test_an_engine_that_dies_at_the_start_ends_all_and_shows_its_last_words(launch: Launch):
    running = launch(crash_at_start="RuntimeError: No available memory for the cache blocks.")

    assert running.result() == 5
    assert "RuntimeError: No available memory for the cache blocks." in running.output
    assert "-0 ended with code 1: the KV cache is too small" in running.output
    assert "Traceback" not in running.output
    assert all(i["pid"] is None for i in running.state()["instances"])


def test_an_engine_program_that_cannot_be_started_is_named(launch: Launch, folder: Path):
    program = folder / "broken"
    program.write_text("not a program")
    program.chmod(0o755)

    running = launch("--set", f'engine_command=["{program}"]')

    assert running.result() == 5
    assert f"cannot start {program}" in running.output


def test_an_engine_that_is_not_ready_in_time_ends_all(launch: Launch, folder: Path):
    running = launch("--set", "startup_timeout=1", start_delay="600", grandchild=str(folder / "grandchild"))
    running.wait(lambda: all(running.instance(name)["state"] == "starting" for name in ("prefill-0", "decode-0")))
    family = running.family()

    assert running.result() == 6
    assert "was not ready 1 s after its start (last: importing vLLM)" in running.output
    assert "raise startup_timeout" in running.output
    assert not survivors(family, within=0.1)


def test_a_taken_port_is_reported_with_its_owner_and_nothing_starts(launch: Launch, proxy_port: int):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", proxy_port))
        taken.listen()
        running = launch()
        assert running.result() == 4

    assert f"port {proxy_port} for the proxy is taken by pid {psutil.Process().pid}" in running.output
    assert running.state() == {}


def test_detached_it_runs_on_after_the_command_returned(launch: Launch, command, folder: Path, proxy_port: int):
    (folder / "run").mkdir()
    (folder / "run" / "state.json").write_text('{"of": "another version"}')
    starter = launch("--detach")

    assert starter.result() == 0, starter.output
    assert "It runs on" in starter.output
    launcher = psutil.Process(starter.state()["launcher_pid"])
    family = [launcher, *launcher.children(recursive=True)]
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"
    assert command("down").returncode == 0
    assert not survivors(family)


def test_detached_a_failure_is_shown_with_its_exit_code(launch: Launch):
    starter = launch("--detach", crash_at_start="boom")

    assert starter.result() == 5
    assert "boom" in starter.output
    assert "ended with code 1" in starter.output


def test_another_server_on_an_engine_s_port_is_not_taken_for_the_engine(launch: Launch, ports: tuple[int, int]):
    running = launch(start_delay="600")
    running.wait(lambda: running.instance("prefill-0")["state"] == "starting")
    stranger = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.engine", "--port", str(ports[0])], stderr=subprocess.DEVNULL, cwd=REPOSITORY
    )
    try:
        assert running.result() == 5
    finally:
        stranger.kill()
        stranger.wait()
    assert f"port {ports[0]} of prefill-0 is answered by another process (pid {stranger.pid})" in running.output


def test_status_tells_how_far_a_start_is_while_up_runs(launch: Launch, command, folder: Path):
    gate = folder / "gate"
    running = launch("--set", f'roles.decode.env.FAKE_ENGINE_GATE="{gate}"')
    running.wait(lambda: running.instance("decode-0")["state"] == "starting")
    said = gate.with_suffix(".new")
    said.write_text(
        "INFO Starting to load model /m...\n"
        "Loading safetensors checkpoint shards:  40% Completed | 2/5 [00:01<00:02,  1.4it/s]\n"
    )
    said.rename(gate)
    running.wait(lambda: bool((running.instance("decode-0")["loading"] or {}).get("of")))

    shown, told = command("status"), command("status", "--output", "json")

    assert (shown.returncode, told.returncode) == (1, 1)
    assert "loading weights, 2 of 5 (40%); " in shown.stdout
    decode = next(each for each in json.loads(told.stdout)["instances"] if each["name"] == "decode-0")
    assert decode["loading"] == {"title": "loading weights", "stage": 3, "stages": 7, "done": 2, "of": 5}
    assert (decode["start_budget"], decode["state"]) == (30.0, "starting")
    gate.touch()
    running.wait_ready()
