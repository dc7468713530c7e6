"""Instances are taken out of traffic and back while the deployment runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import PATIENCE, REPOSITORY
from tests.launcher.local.test_start import ask


def test_a_drained_instance_gets_nothing_until_it_is_resumed(launch: Launch, command, proxy_port: int):
    launch().wait_ready()

    drained = command("drain", "prefill-0")
    assert (drained.returncode, drained.stdout.splitlines()[-1]) == (0, "drained")
    headers, _ = ask(proxy_port)
    assert (headers["x-duet-path"], headers["x-duet-bypass"]) == ("aggregated", "no_prefill")

    assert command("resume", "prefill-0").returncode == 0
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"


@pytest.fixture
def draining(folder: Path):
    """Drain in the background: its process, and a way to wait for a line of its output."""
    started = []

    def start(*arguments: str):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "launcher", "drain", *arguments, "--run-dir", str(folder / "run")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
        )
        started.append(process)

        def said(pattern: str) -> str:
            return next(line for line in process.stdout if re.search(pattern, line))

        return process, said

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_prefill_is_drained_when_decode_has_taken_its_kv(launch: Launch, folder: Path, draining):
    kept = folder / "kept"
    kept.touch()
    launch(keeps_kv=str(kept)).wait_ready()
    process, said = draining("prefill-0", "--wait")
    assert "25.0% of its KV cache waits for decode" in said("prefill-0")
    kept.unlink()
    assert re.search(r"waited \d+\.\d s for its requests, \d+\.\d s for its KV to be taken", said("drained"))
    assert process.wait(PATIENCE) == 0


def test_prefill_that_keeps_kv_is_not_drained(launch: Launch, folder: Path, command):
    kept = folder / "kept"
    kept.touch()
    launch(keeps_kv=str(kept)).wait_ready()
    late = command("drain", "prefill-0", "--within", "0")
    assert late.returncode == 1
    assert "not drained after 0 s" in late.stderr
    assert command("drain", "decode-0").returncode == 0
    assert command("drain", "prefill-0", "--no-wait").stdout.splitlines()[-1] == "no new requests from now on"


def test_prefill_that_does_not_say_what_it_keeps_is_drained_when_the_lease_is_over(
    launch: Launch, folder: Path, command
):
    kept = folder / "kept"
    kept.write_text("unknown")
    launch("--set", "kv_transfer.lease=5", keeps_kv=str(kept)).wait_ready()
    drained = command("drain", "prefill-0")
    assert drained.returncode == 0
    assert "does not say what its KV cache holds: 5 s of the lease are left" in drained.stdout


def test_decode_is_drained_when_its_streams_have_ended(launch: Launch, proxy_port: int, draining):
    launch(pace="0.2").wait_ready()
    body = {"model": "fake", "prompt": "x", "max_tokens": 100, "stream": True, "ignore_eos": True}
    url = f"http://127.0.0.1:{proxy_port}/v1/completions"
    with httpx.stream("POST", url, json=body, trust_env=False, timeout=30) as answer:
        events = answer.iter_raw()
        next(events)
        process, said = draining("decode-0")
        assert "1 request running" in said("decode-0")
    assert "s for its requests" in said("drained")
    assert process.wait(PATIENCE) == 0


def test_an_unknown_instance_is_named_with_those_there_are(launch: Launch, command):
    launch().wait_ready()
    refused = command("drain", "decode-7")
    assert refused.returncode == 4
    assert "no instance decode-7; there are: prefill-0, decode-0" in refused.stderr


def test_without_a_deployment_there_is_nothing_to_drain(command):
    refused = command("drain", "decode-0")
    assert refused.returncode == 4
    assert "nothing runs in" in refused.stderr


def test_status_shows_how_hand_overs_between_pairs_went(launch: Launch, command, proxy_port: int):
    launch().wait_ready()
    ask(proxy_port)
    shown = command("status", "--pairs")
    assert shown.returncode == 0
    row = shown.stdout.splitlines()[1].split()
    assert (row[:3], row[4], row[5:7]) == (["prefill-0", "decode-0", "proven"], "ago", ["1", "0"])
    found = json.loads(command("status", "--pairs", "--output", "json").stdout)
    assert found["pairs"][0]["handed_over"] == 1
