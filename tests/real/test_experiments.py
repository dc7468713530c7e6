"""Two pools of real engines behind one proxy, compared on live requests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.launcher.local.deployments import REPOSITORY, launched
from tests.ports import first_ports, free_port
from tests.proxy.conftest import eventually
from tests.real.conftest import MODEL

_START_BUDGET = 240
Command = Callable[..., dict]


@pytest.fixture(scope="module")
def twins(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Command]]:
    """The proxy's address, and `launcher ab`: two engines with the same weights, each a pool."""
    engine, side_channel = first_ports()
    role = {"kv_cache_memory": "64MiB", "enforce_eager": True}
    content = {
        "description": "Two pools with the same tiny model",
        "device": "cpu",
        "model": {"path": str(model_folder), "served_name": MODEL, "dtype": "float32", "max_model_len": 1024},
        "roles": {"aggregated": role},
        "pools": {"twin": {"roles": {"aggregated": {"max_num_seqs": 8}}}},
        "objectives": {"ttft": 30, "tpot": 5},
        "proxy": {"port": free_port()},
        "ports": {"engine": engine, "side_channel": side_channel},
        "startup_timeout": _START_BUDGET,
    }
    folder = tmp_path_factory.mktemp("two pools")
    profile = folder / "twins.yaml"
    profile.write_text(yaml.safe_dump(content))

    def ab(*arguments: str) -> dict:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "launcher", "ab", *arguments, "--run-dir", str(folder / "run")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "json" in arguments else {}

    with launched(["up", str(profile)], folder / "run", {}, folder / "output") as running:
        running.wait_ready(_START_BUDGET)
        yield f"http://127.0.0.1:{content['proxy']['port']}", ab


def test_both_arms_answer_and_are_measured(twins: tuple[str, Command]):
    proxy, ab = twins
    ab("start", "--b", "twin", "--share", "50")
    told = []
    with httpx.Client(base_url=proxy, trust_env=False, timeout=60) as client:
        for session in range(40):
            body = {
                "model": MODEL,
                "messages": [{"role": "user", "content": f"Number {session}"}],
                "max_tokens": 8,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
            answer = client.post("/v1/chat/completions", json=body, headers={"x-session-id": f"{session}"})
            assert answer.text.rstrip().endswith("data: [DONE]")
            told.append(answer.headers["x-duet-arm"])
            assert answer.headers["x-duet-pool"] == told[-1]
    shown = ab("stop", "--output", "json")["shown"]
    assert {arm: seen["good"] for arm, seen in shown["arms"].items()} == {
        "main": told.count("main"),
        "twin": told.count("twin"),
    }
    by_name = {metric["metric"]: metric for metric in shown["metrics"]}
    for times in ("ttft", "tpot"):
        assert by_name[times]["requests"] == [told.count("main"), told.count("twin")]
        assert by_name[times]["a"] > 0 < by_name[times]["b"]
    assert shown["verdict"] == "not enough data"


async def test_copies_for_a_shadow_get_the_same_texts_from_the_same_weights(twins: tuple[str, Command]):
    proxy, ab = twins
    ab("start", "--b", "twin", "--share", "100", "--shadow")
    async with httpx.AsyncClient(base_url=proxy, trust_env=False, timeout=60) as client:

        async def compared() -> int:
            return (await client.get("/experiment")).json()["arms"]["twin"]["compared_texts"]

        for number in range(5):
            body = {"model": MODEL, "prompt": f"Number {number}", "max_tokens": 8, "temperature": 0}
            assert (await client.post("/v1/completions", json=body)).headers["x-duet-pool"] == "main"
            await eventually(compared, number + 1)
    shown = ab("stop", "--output", "json")["shown"]
    assert shown["arms"]["twin"]["same_texts"] == 5
    assert shown["arms"]["twin"]["requests"] == shown["arms"]["main"]["requests"] == 5
