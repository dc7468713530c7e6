"""`launcher operate speculation`: engines get another K, one after the other, and no request is lost."""

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
import yaml

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import REPOSITORY, Launched, wait_until
from tests.launcher.local.test_restart import asking
from tests.ports import free_port

_LABELS = 'engine="0",model_name="fake"'
CONFIG = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}


class Told:
    """What both fake engines say of their speed with and without drafts, in files that grow by themselves."""

    def __init__(self, folder: Path) -> None:
        self.acceptance = 0.9
        self._folder = folder
        self._enough = threading.Event()
        self._requests = self._drafts = self._seconds = 0.0
        self._accepted = [0.0] * 4
        self._thread = threading.Thread(target=self._work)
        self._write()

    def __enter__(self) -> "Told":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._enough.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._enough.wait(0.05):
            self._requests += 5
            self._drafts += 50
            self._seconds += 5 * (0.02 if self.acceptance > 0.5 else 0.04)
            for place in range(4):
                self._accepted[place] += 50 * self.acceptance ** (place + 1)
            self._write()

    def _write(self) -> None:
        self._tell("aggregated", self._requests * 0.03, {})
        positions = {f'_per_pos_total{{{_LABELS},position="{at}"}}': n for at, n in enumerate(self._accepted)}
        accepted = {f"_total{{{_LABELS}}}": sum(self._accepted), **positions}
        drafts = {
            f"vllm:spec_decode_num_drafts_total{{{_LABELS}}}": self._drafts,
            f"vllm:spec_decode_num_draft_tokens_total{{{_LABELS}}}": self._drafts * 4,
            **{f"vllm:spec_decode_num_accepted_tokens{rest}": count for rest, count in accepted.items()},
        }
        self._tell("aggregated-drafting", self._seconds, drafts)

    def _tell(self, name: str, seconds: float, more: dict[str, float]) -> None:
        time = "vllm:request_time_per_output_token_seconds"
        lines = {f"{time}_sum{{{_LABELS}}}": seconds, f"{time}_count{{{_LABELS}}}": self._requests, **more}
        new = self._folder / f"{name}.new"
        new.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        new.replace(self._folder / name)


@pytest.fixture
def speculating(profile: Path) -> Path:
    """Two aggregated engines that look n-grams up."""
    content = yaml.safe_load(profile.read_text())
    content["roles"] = {"aggregated": {"kv_cache_memory": "1MiB", "replicas": 2}}
    content["speculation"] = CONFIG
    profile.write_text(yaml.safe_dump(content, sort_keys=False))
    return profile


@contextmanager
def operating(folder: Path, *options: str) -> Iterator[Path]:
    """The controller, with windows of a second; what it prints is in the file."""
    output = folder / "controller"
    command = [sys.executable, "-P", "-m", "launcher", "operate", "speculation", "--run-dir", str(folder / "run")]
    times = ["--window", "1", "--confirm", "2", "--rest", "0", "--drain-within", "20"]
    with output.open("w") as file:
        process = subprocess.Popen(
            [*command, *times, *options],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
        )
    try:
        yield output
        assert process.poll() is None, output.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def ks(running: Launched) -> dict[str, int]:
    """K of each engine that runs, by the plan."""
    plan = json.loads((running.run_directory / "plan.json").read_text())
    found = {}
    for engine in plan["engines"]:
        argv = engine["argv"]
        config = json.loads(argv[argv.index("--speculative-config") + 1]) if "--speculative-config" in argv else {}
        found[engine["name"]] = config.get("num_speculative_tokens", 0)
    return found


def decisions(running: Launched) -> list[dict]:
    try:
        lines = (running.run_directory / "speculation.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def test_it_is_switched_off_and_on_again_without_a_failed_request(
    launch: Launch, speculating: Path, folder: Path, proxy_port: int
):
    with Told(folder) as told:
        running = launch(metrics=str(folder))
        running.wait_ready()
        before = {name: running.instance(name)["pid"] for name in ks(running)}
        assert set(ks(running).values()) == {4}
        told.acceptance = 0.02
        port = free_port()
        with asking(proxy_port) as answers, operating(folder, "--retry", "3", "--metrics-port", str(port)) as output:
            wait_until(lambda: set(ks(running).values()) == {0}, output.read_text, 60)
            told.acceptance = 0.9
            wait_until(lambda: set(ks(running).values()) == {4}, output.read_text, 90)
            wait_until(lambda: decisions(running)[-1]["state"]["trial"] is None, output.read_text, 60)
            told_us = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text

    assert {answer.status_code for answer in answers} == {200}
    assert {running.instance(name)["pid"] for name in ks(running)}.isdisjoint(before.values())
    done = [(each["action"], each["done"]) for each in decisions(running) if each["action"] != "keep"]
    assert ("off", "yes") in done
    assert done[-2:] == [("try", "yes"), ("on", "yes")]
    off = next(each for each in decisions(running) if each["action"] == "off")
    assert off["found"]["traffic"]["drafted"] > 0
    assert "of draft tokens are accepted, less than 50%, and no gain is shown" in off["reason"]
    assert 'duet_speculation_cap{pool="main"} 4.0' in told_us


def test_a_dry_run_changes_nothing_and_says_what_it_would_do(launch: Launch, speculating: Path, folder: Path):
    with Told(folder) as told:
        told.acceptance = 0.02
        running = launch(metrics=str(folder))
        running.wait_ready()
        with operating(folder, "--dry-run") as output:
            wait_until(lambda: "(dry run)" in output.read_text(), output.read_text, 60)

    assert set(ks(running).values()) == {4}
    assert "of draft tokens are accepted, less than 50%, and no gain is shown (dry run)" in output.read_text()


def test_the_only_engine_is_not_restarted_unless_that_is_allowed(launch: Launch, speculating: Path, folder: Path):
    content = yaml.safe_load(speculating.read_text())
    content["roles"]["aggregated"]["replicas"] = 1
    speculating.write_text(yaml.safe_dump(content))
    with Told(folder) as told:
        told.acceptance = 0.02
        running = launch(metrics=str(folder))
        running.wait_ready()
        with operating(folder) as output:
            wait_until(lambda: "nobody else answers" in output.read_text(), output.read_text, 60)
        assert set(ks(running).values()) == {4}
        with operating(folder, "--allow-downtime") as output:
            wait_until(lambda: set(ks(running).values()) == {0}, output.read_text, 60)


def test_an_engine_that_does_not_start_with_its_new_options_gets_its_old_ones(
    launch: Launch, speculating: Path, folder: Path
):
    gate = folder / "gate"
    gate.write_text("")
    with Told(folder) as told:
        told.acceptance = 0.02
        running = launch(metrics=str(folder), gate=str(gate))
        running.wait_ready()
        with operating(folder) as output:
            gate.write_text("ERROR no such options")
            wait_until(lambda: "those it had" in output.read_text(), output.read_text, 60)
            gate.write_text("")
            wait_until(lambda: "(no)" in output.read_text(), output.read_text, 60)
    assert "aggregated-1" not in output.read_text().split("those it had")[0]


def test_after_its_end_it_goes_on_where_it_was(launch: Launch, speculating: Path, folder: Path):
    with Told(folder) as told:
        told.acceptance = 0.02
        running = launch(metrics=str(folder))
        running.wait_ready()
        with operating(folder) as output:
            wait_until(lambda: set(ks(running).values()) == {0}, output.read_text, 60)
        told.acceptance = 0.9
        with operating(folder, "--retry", "1") as output:
            wait_until(lambda: "it is off" in output.read_text(), output.read_text, 60)


def test_a_second_controller_of_the_same_engines_is_refused(launch: Launch, speculating: Path, command, folder: Path):
    launch().wait_ready()
    with operating(folder) as output:
        wait_until(lambda: "too little traffic" in output.read_text(), output.read_text, 60)
        second = command("operate", "speculation")

    assert second.returncode == 4
    assert "another `launcher operate speculation --pool main` is at work" in second.stderr


def test_each_pool_that_speculates_is_remembered_by_itself(launch: Launch, speculating: Path, folder: Path):
    content = yaml.safe_load(speculating.read_text())
    content["pools"] = {"other": {"speculation": CONFIG | {"num_speculative_tokens": 2}}}
    speculating.write_text(yaml.safe_dump(content))
    launch().wait_ready()
    for pool in ("main", "other"):
        with operating(folder, "--pool", pool) as output:
            wait_until(lambda: "too little traffic" in output.read_text(), output.read_text, 60)

    main, other = (
        json.loads((folder / "run" / f"speculation{name}.jsonl").read_text().splitlines()[0]) for name in ("", "-other")
    )
    assert (main["state"]["highest"], other["state"]["highest"]) == (4, 2)


def test_a_deployment_that_does_not_speculate_is_refused(launch: Launch, command, folder: Path):
    launch().wait_ready()

    done = command("operate", "speculation")

    assert done.returncode == 4
    assert "no engine in" in done.stderr
    assert "launcher tune speculation" in done.stderr


def test_with_a_plain_pool_beside_it_traffic_is_steered_and_nothing_restarted(
    launch: Launch, speculating: Path, folder: Path, proxy_port: int, command
):
    content = yaml.safe_load(speculating.read_text())
    content["roles"]["aggregated"]["replicas"] = 1
    content["pools"] = {"plain": {"speculation": None}}
    speculating.write_text(yaml.safe_dump(content))

    def shares() -> dict[str, float]:
        split = json.loads((folder / "run" / "proxy.json").read_text())["split"]
        return {} if split is None else split["shares"]

    with Told(folder) as told:
        told.acceptance = 0.02
        running = launch(metrics=str(folder))
        running.wait_ready()
        before = {name: running.instance(name)["pid"] for name in ("aggregated-0", "aggregated-plain-0")}
        with asking(proxy_port) as answers, operating(folder, "--retry", "2") as output:
            wait_until(lambda: shares() == {"main": 50, "plain": 50}, output.read_text, 60)
            wait_until(lambda: shares() == {"main": 5, "plain": 95}, output.read_text, 60)
            told.acceptance = 0.9
            wait_until(lambda: shares() == {"main": 95, "plain": 5}, output.read_text, 60)

    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-duet-pool"] for answer in answers} == {"main", "plain"}
    assert before == {name: running.instance(name)["pid"] for name in before}

    ended = command("ab", "stop")
    assert (ended.returncode, shares()) == (0, {}), ended.stderr
    assert "no request is divided" in ended.stdout
