"""One real vLLM pair for the whole session, started by `launcher up`."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest
import yaml

from tests.launcher.local.deployments import REPOSITORY, Launched, launched

MODEL = "tiny"
_START_BUDGET = 180


@dataclass(frozen=True)
class Pair:
    """Where the instances of the running pair are."""

    launcher: Launched
    proxy: str
    prefill: str
    decode: str

    def tokens(self, source: str) -> int:
        """Prompt tokens that decode got from this source so far, by its own counter."""
        counter = f'vllm:prompt_tokens_by_source_total{{engine="0",model_name="{MODEL}",source="{source}"}} '
        lines = httpx.get(f"{self.decode}/metrics", trust_env=False).text.splitlines()
        return int(float(next(line.removeprefix(counter) for line in lines if line.startswith(counter))))


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny generated model, in a folder with a space."""
    folder = tmp_path_factory.mktemp("a model")
    subprocess.run([sys.executable, "-m", "tests.real.tiny_model", str(folder)], check=True, cwd=REPOSITORY)
    return folder


@pytest.fixture(scope="session")
def pair_profile(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One prefill and one decode of the tiny model."""
    role = {
        "kv_cache_memory": "64MiB",
        "enforce_eager": True,
        "engine_args": {"enable-prompt-tokens-details": True},
        "env": {"VLLM_SERVER_DEV_MODE": "1"},  # for routes by which a test makes an engine give up
    }
    # In 16 bits, logits of random weights tie now and then, and a prompt computed in other pieces decides otherwise.
    content = {
        "description": "A real pair with a tiny model",
        "device": "cpu",
        "model": {
            "path": str(model_folder),
            "served_name": MODEL,
            "dtype": "float32",
            "max_model_len": 1024,
            "tool_call_parser": "hermes",
        },
        "roles": {"prefill": role, "decode": role},
        # Tests count requests and tokens: canaries would be among them.
        "proxy": {"port": 18000, "canary": {"enabled": False}},
        "ports": {"engine": 18100, "side_channel": 15600},
        "startup_timeout": _START_BUDGET,
    }
    path = tmp_path_factory.mktemp("profiles") / "pair.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="session")
def pair(pair_profile: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The running pair."""
    folder = tmp_path_factory.mktemp("a pair")
    with launched(["up", str(pair_profile)], folder / "run", {}, folder / "output") as running:
        running.wait_ready(_START_BUDGET)
        urls = {instance["name"]: instance["url"] for instance in running.state()["instances"]}
        yield Pair(running, urls["proxy"], urls["prefill-0"], urls["decode-0"])


@pytest.fixture(scope="session")
def through_proxy(pair: Pair) -> Iterator[openai.OpenAI]:
    """The official client, talking to the proxy."""
    with openai.OpenAI(base_url=f"{pair.proxy}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def to_decode(pair: Pair) -> Iterator[openai.OpenAI]:
    """The official client, talking to the decode engine alone."""
    with openai.OpenAI(base_url=f"{pair.decode}/v1", api_key="none", max_retries=0) as client:
        yield client
