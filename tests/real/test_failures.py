"""Real engines that die, freeze and come back: what is noticed, how soon, and what clients see meanwhile."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.launcher.local.deployments import launched, wait_until
from tests.real.conftest import MODEL, Pair

_START_BUDGET = 180
PROMPT = {"model": MODEL, "prompt": "the quick brown fox " * 40, "max_tokens": 4, "temperature": 0}


class Deployment(Pair):
    """With canaries, as users have them."""

    def get(self, path: str) -> dict:
        """What the proxy says of itself."""
        return httpx.get(self.proxy + path, trust_env=False, timeout=30).json()

    def healthy(self, name: str) -> bool:
        """Whether an instance is in rotation."""
        return next(each["healthy"] for each in self.get("/ready")["instances"] if each["name"] == name)

    def pair(self) -> dict:
        """The only one."""
        return self.get("/pairs")["pairs"][0]

    def ask(self) -> httpx.Response:
        """A client's request."""
        return httpx.post(f"{self.proxy}/v1/completions", json=PROMPT, trust_env=False, timeout=60)

    def serves_by_pd(self) -> bool:
        """Whether a request goes through the pair."""
        return self.pair()["standing"] == "proven" and self.ask().headers.get("x-duet-path") == "pd"


@pytest.fixture(scope="module")
def deployment(pair_profile: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A pair that may be broken; each test leaves it working."""
    folder = tmp_path_factory.mktemp("a pair to break")
    changes = ["proxy.canary.enabled=true", "proxy.port=18200", "ports.engine=18210", "ports.side_channel=15710"]
    options = [part for change in changes for part in ("--set", change)]
    with launched(["up", str(pair_profile), *options], folder / "run", {}, folder / "output") as running:
        running.wait_ready(_START_BUDGET)
        urls = {instance["name"]: instance["url"] for instance in running.state()["instances"]}
        yield Deployment(running, urls["proxy"], urls["prefill-0"], urls["decode-0"])


def seconds_until(condition: Callable[[], bool], patience: float = 60) -> float:
    """How long it takes."""
    started = time.monotonic()
    wait_until(condition, patience=patience)
    return time.monotonic() - started


def test_a_pair_is_proven_from_the_start_by_the_engines_own_counters(deployment: Deployment):
    pair = deployment.pair()
    assert pair["standing"] == "proven"
    assert pair["proof"]["tokens"] == 304  # two blocks of 128 and a little more
    assert pair["proof"]["bytes_per_second"] > 0
    assert deployment.tokens("external_kv_transfer") >= 304


@pytest.mark.parametrize(("name", "meanwhile"), [("prefill-0", 200), ("decode-0", 503)])
def test_a_killed_instance_is_out_within_seconds_and_proven_again_when_it_is_back(
    deployment: Deployment, name: str, meanwhile: int
):
    before = deployment.launcher.instance(name)["pid"]
    psutil.Process(before).kill()
    assert seconds_until(lambda: not deployment.healthy(name)) < 5
    pair = deployment.pair()
    assert (pair["standing"], pair["gets_requests"]) == ("away", False)
    assert name in pair["reason"]
    answer = deployment.ask()
    assert answer.status_code == meanwhile
    assert answer.headers.get("x-duet-path") in (None, "aggregated")

    deployment.launcher.wait(lambda: deployment.launcher.instance(name)["pid"] not in {None, before})
    deployment.launcher.wait(lambda: deployment.launcher.instance(name)["state"] == "ready", patience=_START_BUDGET)
    assert seconds_until(deployment.serves_by_pd) < 15
    moved = deployment.tokens("external_kv_transfer")
    assert deployment.ask().status_code == 200
    wait_until(lambda: deployment.tokens("external_kv_transfer") > moved)


@pytest.mark.parametrize("frozen", ["the engine behind its server", "server and engine"])
def test_a_frozen_decode_is_out_within_15_seconds_and_back_when_it_thaws(deployment: Deployment, frozen: str):
    server = psutil.Process(deployment.launcher.instance("decode-0")["pid"])
    stopped = server.children(recursive=True)
    if frozen == "server and engine":
        stopped.append(server)
    with ThreadPoolExecutor() as threads:
        try:
            for process in stopped:
                os.kill(process.pid, signal.SIGSTOP)
            waiting = threads.submit(deployment.ask)
            assert seconds_until(lambda: not deployment.healthy("decode-0")) < 15
            assert deployment.pair()["standing"] == "away"
            assert deployment.ask().status_code == 503
        finally:
            for process in stopped:
                os.kill(process.pid, signal.SIGCONT)
        assert seconds_until(deployment.serves_by_pd) < 15
        assert waiting.result().status_code == 200


def test_a_busy_decode_is_not_shot_for_being_slow(deployment: Deployment):
    body = PROMPT | {"max_tokens": 600, "ignore_eos": True}
    with ThreadPoolExecutor(24) as threads:
        asked = [
            threads.submit(httpx.post, f"{deployment.proxy}/v1/completions", json=body, trust_env=False, timeout=240)
            for _ in range(24)
        ]
        while not all(each.done() for each in asked):
            assert deployment.healthy("decode-0")
            assert deployment.healthy("prefill-0")
            assert deployment.pair()["gets_requests"]
        assert {each.result().status_code for each in asked} == {200}


def test_prove_shows_the_pair_and_goes_by_what_the_canary_shows(deployment: Deployment):
    answer = httpx.post(f"{deployment.proxy}/pairs/prove", trust_env=False, timeout=60)
    assert [pair["proof"]["verdict"] for pair in answer.json()["pairs"]] == ["proven"]
