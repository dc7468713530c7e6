"""However a deployment ends, none of its processes lives 10 seconds later. These tests kill for real."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import Launched, survivors, wait_until


def family_with_grandchild(running: Launched, pid_file: Path) -> list[psutil.Process]:
    family = running.family()
    grandchild = psutil.Process(int(pid_file.read_text()))
    assert grandchild in family
    return family


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_after_a_signal_to_the_launcher(launch: Launch, folder: Path, number: signal.Signals):
    running = launch(grandchild=str(folder / "grandchild"))
    running.wait_ready()
    family = family_with_grandchild(running, folder / "grandchild")
    assert len(family) >= 8  # launcher, three keepers, three programs, a grandchild at least

    running.send(number)

    assert running.result() == (0 if number is not signal.SIGKILL else -signal.SIGKILL), running.output
    assert not survivors(family)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_engines_ignore_sigterm(launch: Launch, number: signal.Signals):
    running = launch(ignore_sigterm="1")
    running.wait_ready()
    family = running.family()

    running.send(number)

    assert not survivors(family)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_while_engines_load(launch: Launch, folder: Path, number: signal.Signals):
    running = launch(start_delay="600", grandchild=str(folder / "grandchild"))
    running.wait(lambda: running.instance("decode-0")["state"] == "starting" and (folder / "grandchild").exists())
    family = running.family()

    running.send(number)

    assert running.result() == (130 if number is signal.SIGINT else -signal.SIGKILL)
    assert not survivors(family)


def test_after_an_engine_was_killed_its_own_children_end(launch: Launch, folder: Path):
    running = launch(grandchild=str(folder / "grandchild"))
    running.wait_ready()
    engines = [psutil.Process(running.instance(name)["pid"]) for name in ("prefill-0", "decode-0")]
    grandchildren = [child for engine in engines for child in engine.children()]
    assert len(grandchildren) == 2

    for engine in engines:
        engine.kill()

    assert not survivors(grandchildren)
    running.wait(lambda: all(running.instance(name)["state"] == "ready" for name in ("prefill-0", "decode-0")))


def test_after_a_keeper_was_killed_its_engine_and_its_daemons_end(launch: Launch, folder: Path):
    running = launch(grandchild=str(folder / "grandchild"))
    running.wait_ready()
    before = running.instance("decode-0")
    engine = psutil.Process(before["pid"])
    family = [engine, *engine.children(recursive=True)]
    assert len(family) == 2

    os.kill(before["keeper_pid"], signal.SIGKILL)

    assert not survivors(family)
    running.wait(lambda: running.instance("decode-0")["state"] == "ready")
    assert running.instance("decode-0")["pid"] != before["pid"]


def test_when_the_launcher_and_a_keeper_are_killed_together(launch: Launch, folder: Path):
    running = launch(grandchild=str(folder / "grandchild"))
    running.wait_ready()
    family = running.family()

    for pid in (running.instance("decode-0")["keeper_pid"], running.process.pid):
        os.kill(pid, signal.SIGKILL)

    assert not survivors(family)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_while_engines_print_without_a_pause(launch: Launch, number: signal.Signals):
    running = launch(flood="1")
    running.wait_ready()
    family = running.family()

    running.send(number)

    assert not survivors(family)


def test_a_new_launcher_starts_right_after_the_old_one_was_killed(launch: Launch):
    first = launch(ignore_sigterm="1")
    first.wait_ready()
    family = first.family()
    first.send(signal.SIGKILL)
    first.result()

    second = launch()

    second.wait_ready()
    assert not survivors(family, within=0.1)


def test_nothing_is_started_when_the_run_directory_is_in_use(launch: Launch):
    first = launch()
    first.wait_ready()

    second = launch()

    assert second.result() == 4
    assert f"a launcher (pid {first.process.pid}) already runs" in second.output
    first.wait(lambda: first.instance("proxy")["state"] == "ready")


def test_down_returns_when_nothing_runs_any_more(launch: Launch, command):
    running = launch()
    running.wait_ready()
    family = running.family()

    done = command("down")

    assert (done.returncode, done.stdout) == (0, "stopped\n")
    wait_until(lambda: running.process.poll() is not None)
    assert not survivors(family, within=1.0)


def test_when_a_keeper_or_an_engine_is_frozen(launch: Launch):
    running = launch()
    running.wait_ready()
    family = running.family()
    os.kill(running.instance("prefill-0")["keeper_pid"], signal.SIGSTOP)
    os.kill(running.instance("decode-0")["pid"], signal.SIGSTOP)

    running.send(signal.SIGINT)

    assert running.result() == 0
    assert not survivors(family)
