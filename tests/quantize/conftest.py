"""A tiny model that has learned something, its traffic, and one real quantization of each scheme."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from launcher import machine
from launcher.errors import QuantizeError
from launcher.quantize import setup
from tests.launcher.local.deployments import REPOSITORY
from tests.quantize.traffic_of_a_shop import conversations, questions, write_jsonl

SMALL = ["--records", "64", "--held-out", "32", "--max-tokens", "256", "--force"]
"""Enough for two layers, and quick."""


@dataclass(frozen=True)
class Quantized:
    """One run of `launcher quantize`."""

    code: int
    output: str
    out: Path

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.out.with_name(f"{self.out.name}.report") / "report.json").read_text())


def quantize(model: Path, *options: str, out: Path) -> Quantized:
    """The command as a user gives it."""
    command = [sys.executable, "-P", "-m", "launcher", "quantize", str(model), *options, "--out", str(out)]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, stdin=subprocess.DEVNULL)
    return Quantized(done.returncode, done.stdout + done.stderr, out)


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """That which `launcher quantize setup` made."""
    try:
        return setup.worker_python(None, machine.look(os.environ).cache, os.environ)
    except QuantizeError as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
def model(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model in 16 bits, in a folder with a space."""
    folder = tmp_path_factory.mktemp("a model") / "shop"
    subprocess.run([sys.executable, "-m", "tests.quantize.trained_model", str(folder)], check=True, cwd=REPOSITORY)
    return folder


@pytest.fixture(scope="session")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations like those it has learned."""
    file = tmp_path_factory.mktemp("traffic") / "traffic.jsonl"
    write_jsonl(({"messages": each} for each in conversations(200, seed=3)), file)
    return file


@pytest.fixture(scope="session")
def few_questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled task, too short to show anything."""
    file = tmp_path_factory.mktemp("task") / "task.jsonl"
    write_jsonl(questions(40, seed=4), file)
    return file


@pytest.fixture(scope="session")
def int8(model: Path, traffic: Path, tmp_path_factory: pytest.TempPathFactory) -> Quantized:
    """W8A8."""
    out = tmp_path_factory.mktemp("quantized") / "int8"
    return quantize(model, "--scheme", "int8", "--calibration", str(traffic), *SMALL, out=out)


@pytest.fixture(scope="session")
def int4(model: Path, traffic: Path, tmp_path_factory: pytest.TempPathFactory) -> Quantized:
    """W4A16."""
    out = tmp_path_factory.mktemp("quantized") / "int4"
    return quantize(model, "--scheme", "int4", "--calibration", str(traffic), *SMALL, out=out)


@pytest.fixture(scope="session")
def fp8(model: Path, traffic: Path, few_questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Quantized:
    """FP8, judged by a task that is too short, and published all the same."""
    out = tmp_path_factory.mktemp("quantized") / "fp8"
    options = ["--scheme", "fp8", "--calibration", str(traffic), "--task", str(few_questions), "--publish-anyway"]
    return quantize(model, *options, *SMALL, out=out)
