"""The launcher with real engines."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil

from tests.launcher.local.deployments import launched, survivors, wait_until
from tests.real.conftest import Pair


def test_threads_of_both_engines_may_use_all_cores_and_pollers_give_way(pair: Pair):
    cores = os.sched_getaffinity(0)
    for name in ("prefill-0", "decode-0"):
        engine = psutil.Process(pair.launcher.instance(name)["pid"])
        threads = [t.id for process in (engine, *engine.children(recursive=True)) for t in process.threads()]
        assert all(os.sched_getaffinity(thread) == cores for thread in threads)
        assert [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads].count(19) == 1


def test_an_engine_core_of_a_killed_server_is_ended_and_the_server_started_again(pair: Pair, through_proxy):
    before = pair.launcher.instance("prefill-0")
    server = psutil.Process(before["pid"])
    family = [server, *server.children(recursive=True)]
    assert len(family) >= 2

    server.kill()

    assert not survivors(family)
    pair.launcher.wait(lambda: pair.launcher.instance("prefill-0")["pid"] not in {None, before["pid"]})
    pair.launcher.wait(lambda: pair.launcher.instance("prefill-0")["state"] == "ready", patience=180)
    wait_until(lambda: httpx.get(f"{pair.proxy}/ready", trust_env=False).json()["modes"]["pd"])
    moved = pair.tokens("external_kv_transfer")
    messages = [{"role": "user", "content": "After the restart " * 30}]
    answer = through_proxy.chat.completions.with_raw_response.create(model="tiny", messages=messages, max_tokens=4)
    assert answer.headers["x-duet-path"] == "pd"
    assert pair.tokens("external_kv_transfer") > moved


def test_nothing_is_left_when_the_launcher_is_killed_while_real_engines_load(pair_profile: Path, tmp_path: Path):
    arguments = ["up", str(pair_profile), "--set", "proxy.port=18001"]
    with launched(arguments, tmp_path / "run", {}, tmp_path / "output") as running:
        running.wait(lambda: "starting the engine core" in running.output, patience=120)
        family = running.family()

        running.send(signal.SIGKILL)

        assert not survivors(family)


def test_nothing_is_left_when_keepers_are_killed_with_the_launcher(pair_profile: Path, tmp_path: Path):
    arguments = ["up", str(pair_profile), "--set", "proxy.port=18001"]
    with launched(arguments, tmp_path / "run", {}, tmp_path / "output") as running:
        running.wait_ready(180)
        # The kernel ends what a killed keeper has started itself; engine cores are the children of that.
        family = running.family()

        for pid in (running.instance("decode-0")["keeper_pid"], running.process.pid):
            os.kill(pid, signal.SIGKILL)

        assert not survivors(family)


def test_the_demo_s_proof_holds_with_a_model_of_ones_own(model_folder: Path, tmp_path: Path):
    options = ["--model", str(model_folder), "--set", "proxy.port=18002", "--set", "model.max_model_len=1024"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "launcher", "demo", "--once", *options, "--run-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Proved: decode computed none of the" in done.stdout
