"""After the start: crashes, restarts, crash loops."""

import json
import os
import shutil
import signal
from pathlib import Path

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import survivors, wait_until
from tests.launcher.local.test_start import ask
from tests.ports import free_port


def test_a_killed_engine_is_started_again(launch: Launch, command, proxy_port: int):
    running = launch()
    running.wait_ready()

    os.kill(running.instance("prefill-0")["pid"], signal.SIGKILL)
    running.wait(lambda: running.instance("prefill-0")["restarts"] == 1)
    running.wait(lambda: running.instance("prefill-0")["state"] == "ready")

    assert "prefill-0    restarting: prefill-0 was killed by signal 9" in running.output
    status = json.loads(command("status", "--output", "json").stdout)
    assert [i["restarts"] for i in status["instances"]] == [1, 0, 0]
    assert ask(proxy_port)[1]["choices"]


def test_a_killed_proxy_is_started_again(launch: Launch, proxy_port: int):
    running = launch()
    running.wait_ready()

    os.kill(running.instance("proxy")["pid"], signal.SIGKILL)
    running.wait(lambda: running.instance("proxy")["restarts"] == 1)
    running.wait(lambda: running.instance("proxy")["state"] == "ready")

    assert ask(proxy_port)[0]["x-duet-path"] == "pd"


def test_a_crash_loop_of_the_only_decode_ends_the_deployment_with_the_reason(launch: Launch):
    running = launch("--set", 'roles.decode.env.FAKE_ENGINE_CRASH_AFTER="1.5"')

    assert running.result() == 5
    assert "decode-0     failed: crash loop: decode-0 ended with code 1" in running.output
    assert "nothing is left that could answer" in running.output


def test_a_crash_loop_of_prefill_leaves_decode_serving_alone(launch: Launch, command, proxy_port: int):
    running = launch("--set", 'roles.prefill.env.FAKE_ENGINE_CRASH_AFTER="1.5"')
    running.wait(lambda: running.instance("prefill-0")["state"] == "failed")

    headers, _ = ask(proxy_port)

    assert headers["x-duet-path"] == "aggregated"
    assert headers["x-duet-bypass"]
    report = command("status")
    assert report.returncode == 1
    assert "crash loop: prefill-0" in " ".join(report.stdout.split())


def test_a_state_that_cannot_be_written_any_more_does_not_end_the_deployment(
    launch: Launch, folder: Path, proxy_port: int
):
    running = launch()
    running.wait_ready()
    engine, before = running.instance("prefill-0")["pid"], running.family()
    (folder / "run" / "state.json.new").mkdir()

    os.kill(engine, signal.SIGKILL)
    wait_until(lambda: "warning: cannot write" in running.output)

    assert ask(proxy_port)[1]["choices"]
    running.send(signal.SIGINT)
    assert running.result() == 0
    assert not survivors(before)


def test_a_run_directory_that_is_removed_ends_the_deployment_with_the_reason(launch: Launch, folder: Path):
    running = launch(grandchild=str(folder / "grandchild"))
    running.wait_ready()
    before = running.family()

    shutil.rmtree(folder / "run")

    assert running.result() == 4
    assert f"error: the run directory {folder / 'run'} was removed or replaced" in running.output
    assert not survivors(before, within=0.1)


def test_a_run_directory_that_another_launcher_made_anew_is_left_alone(launch: Launch, folder: Path):
    first = launch()
    first.wait_ready()
    before = first.family()
    shutil.rmtree(folder / "run")
    second = launch("--set", f"proxy.port={free_port()}")

    assert first.result() == 4
    assert not survivors(before, within=0.1)
    second.wait_ready()
    assert second.state()["launcher_pid"] == second.process.pid
