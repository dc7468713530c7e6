"""`launcher advise --window`: advice from the metrics of a running deployment."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from proxy.keys import new_key
from tests.launcher.advice.exposition import histogram, metrics
from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import REPOSITORY, wait_until

Ask = Callable[[int], None]
AGGREGATED = [
    part
    for role, value in {"prefill": "null", "decode": "null", "aggregated": "{kv_cache_memory: 1MiB}"}.items()
    for part in ("--set", f"roles.{role}={value}")
]


@pytest.fixture
def told(folder: Path) -> Path:
    """What engines say in addition, one file for each role."""
    path = folder / "metrics"
    path.mkdir()
    return path


@pytest.fixture
def ask(proxy_port: int) -> Ask:
    """Send so many requests."""

    def send(count: int) -> None:
        with httpx.Client(trust_env=False) as client:
            for number in range(count):
                body = {"model": "fake", "prompt": f"one two {number}", "stream": True}
                client.post(f"http://127.0.0.1:{proxy_port}/v1/completions", json=body).raise_for_status()

    return send


@contextmanager
def advising(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`launcher advise` after its first look at the metrics; a SIGINT ends its window."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "launcher",
            "advise",
            "--run-dir",
            str(folder / "run"),
            "--window",
            "600",
            *arguments,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        assert process.stderr is not None
        assert "Watching fakes at" in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> dict:
    """The advice, once the window was ended."""
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    return json.loads(output)


def test_the_window_alone_counts_not_what_was_before(launch: Launch, folder: Path, told: Path, ask: Ask):
    (told / "decode").write_text(metrics(histogram("vllm:request_prompt_tokens", {1000: 90, 10_000: 90})))
    launch(metrics=str(told)).wait_ready()
    ask(2)
    with advising(folder, "--output", "json") as process:
        ask(3)
        (told / "decode").write_text(metrics(histogram("vllm:request_prompt_tokens", {1000: 90, 10_000: 100})))
        advice = ended(process)
    facts = advice["facts"]
    assert facts["requests"] == {"value": 3.0, "unit": "requests", "origin": "measured"}
    assert facts["prompt_tokens_p50"]["value"] == 5500
    assert facts["prompt_tokens_p95"]["value"] == 9550
    assert facts["pd_share"]["value"] == 1
    assert facts["ttft_p95"]["origin"] == "measured"
    assert {name: facts[name] for name in ("device", "pd", "speculation")} == {
        "device": {"value": "cpu", "unit": None, "origin": "configured"},
        "pd": {"value": True, "unit": None, "origin": "configured"},
        "speculation": {"value": "none", "unit": None, "origin": "configured"},
    }
    assert verdict(advice, "pd") == "no"


def test_memory_is_named_with_the_figures(launch: Launch, folder: Path, told: Path, ask: Ask):
    launch(*AGGREGATED, metrics=str(told)).wait_ready()
    with advising(folder, "--output", "json", "--answer", "quantized=none", "--answer", "exact_work=no") as process:
        ask(4)
        (told / "aggregated").write_text(
            metrics({"vllm:num_preemptions_total": 2, "vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0.99})
        )
        advice = ended(process)
    memory = advice["bottlenecks"][0]
    assert (memory["name"], memory["there"], memory["origin"]) == ("memory_short", True, "measured")
    assert "50 % preemptions per request" in memory["because"]
    assert advice["next"]["technique"] == "int8"
    assert advice["start_from"]["commands"][0].startswith("launcher check demo --set")
    about = json.loads((folder / "run" / "about.json").read_text())
    assert (about["profile"], about["advice"]["verdict"]) == ("fakes", "yes")
    said = {each["technique"]: each for each in about["advice"]["advice"]}
    assert (said["int8"]["verdict"], said["int8"]["in_use"]) == ("yes", False)
    assert said["int8"]["reason"]


def test_without_requests_there_is_nothing_to_judge(launch: Launch, folder: Path):
    launch().wait_ready()
    with advising(folder, "--output", "json") as process:
        advice = ended(process)
    assert advice["verdict"] == "nothing-to-judge"
    assert json.loads((folder / "run" / "about.json").read_text())["advice"] is None
    shown = advise(folder, "--window", "1")
    assert shown.returncode == 0
    assert shown.stdout == "Nothing to judge: no requests in 1 s.\n\n"


def test_an_engine_that_restarts_in_the_window_is_said_and_counted_on(
    launch: Launch, folder: Path, told: Path, ask: Ask
):
    (told / "decode").write_text(metrics(histogram("vllm:request_generation_tokens", {10: 500, 100: 500})))
    launch(metrics=str(told)).wait_ready()
    with advising(folder, "--output", "json") as process:
        ask(1)
        (told / "decode").write_text(metrics(histogram("vllm:request_generation_tokens", {10: 0, 100: 20})))
        advice = ended(process)
    assert (
        "decode-0 began to count anew in the window (a restart): what it counted just before is lost" in advice["notes"]
    )
    assert advice["facts"]["output_tokens_p50"]["value"] == 55


@pytest.mark.parametrize("with_admin", [True, False])
def test_metrics_behind_a_key_are_read_at_the_operators_address_or_said_to_be_missing(
    launch: Launch, folder: Path, profile: Path, proxy_port: int, unused_tcp_port: int, with_admin: bool
):
    key, digest = new_key()
    content = yaml.safe_load(profile.read_text())
    content["proxy"] |= {
        "client_keys": [{"name": "alice", "sha256": digest}],
        "workers": 2,
        **({"admin": {"port": unused_tcp_port}} if with_admin else {}),
    }
    profile.write_text(yaml.safe_dump(content))
    launch().wait_ready()
    with advising(folder, "--output", "json") as process:
        httpx.post(
            f"http://127.0.0.1:{proxy_port}/v1/completions",
            json={"model": "fake", "prompt": "one two"},
            headers={"x-api-key": key},
            trust_env=False,
        ).raise_for_status()
        if with_admin:  # another worker's count is there a moment later
            told = f"http://127.0.0.1:{unused_tcp_port}/metrics"
            wait_until(lambda: "duet_requests_total{" in httpx.get(told, trust_env=False).text)
        advice = ended(process)
    if with_admin:
        assert advice["facts"]["requests"]["value"] == 1
        assert not [note for note in advice["notes"] if note.startswith("proxy")]
    else:
        assert "requests" not in advice["facts"]
        [note] = [note for note in advice["notes"] if note.startswith("proxy")]
        assert "give the proxy an address for operators (proxy.admin)" in note


def test_where_nothing_serves_it_says_so(folder: Path):
    refused = advise(folder, "--window", "1")
    assert refused.returncode == 4
    assert "nothing serves in" in refused.stderr


def verdict(advice: dict, technique: str) -> str:
    return next(each["verdict"] for each in advice["techniques"] if each["name"] == technique)


def advise(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "launcher", "advise", "--run-dir", str(folder / "run"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
