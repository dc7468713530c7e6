"""A profile whose engines are fakes, and a way to run it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.launcher.local.deployments import REPOSITORY, Launched, launched
from tests.ports import first_ports, free_port


@pytest.fixture
def ports() -> tuple[int, int]:
    """First engine port and first side-channel port."""
    return first_ports()


@pytest.fixture
def proxy_port() -> int:
    """Free at this moment."""
    return free_port()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All paths of these tests have a space."""
    path = tmp_path / "a folder"
    path.mkdir()
    return path


@pytest.fixture
def profile(folder: Path, ports: tuple[int, int], proxy_port: int) -> Path:
    """A fake prefill and a fake decode engine."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (model / "tokenizer.json").write_text("{}")
    path = folder / "fakes.yaml"
    content = {
        "description": "Two fake engines",
        "device": "cpu",
        "model": {"path": str(model), "served_name": "fake"},
        "roles": {"prefill": {"kv_cache_memory": "1MiB"}, "decode": {"kv_cache_memory": "1MiB"}},
        "proxy": {"port": proxy_port},
        "ports": {"engine": ports[0], "side_channel": ports[1]},
        "startup_timeout": 30,
        "engine_command": [sys.executable, "-m", "tests.fakes.engine"],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


Launch = Callable[..., Launched]


@pytest.fixture
def launch(profile: Path, folder: Path) -> Iterator[Launch]:
    """Start `launcher up` of the fakes: options as arguments, the engines' faults as keywords."""
    with ExitStack() as running:

        def start(*options: str, verb: str = "up", **faults: str) -> Launched:
            environ = {f"FAKE_ENGINE_{name.upper()}": value for name, value in faults.items()}
            output = folder / f"output-{len(list(folder.glob('output-*')))}"
            return running.enter_context(launched([verb, str(profile), *options], folder / "run", environ, output))

        yield start


@pytest.fixture
def command(folder: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run another verb of the launcher on the same run directory, to its end."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-P", "-m", "launcher", *arguments, "--run-dir", str(folder / "run")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )

    return run
