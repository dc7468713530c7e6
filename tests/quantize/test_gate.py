"""The gate on real checkpoints: one that is damaged, one that is the original itself."""

import os
import shutil
import subprocess

import pytest

from launcher.profile import Device
from launcher.quantize.gate.judge import judge
from launcher.quantize.gate.records import records_of
from launcher.quantize.gate.settings import default
from launcher.quantize.gate.shape import Limits, Verdict
from launcher.quantize.sides import Sides, scores_of
from launcher.quantize.worker_process import Worker
from tests.quantize.test_refusals import Silent


@pytest.fixture(scope="module")
def sides(interpreter, model, traffic, tmp_path_factory):
    """Records that were held out, tokenized by the worker."""
    folder = tmp_path_factory.mktemp("prepared")
    job = {"step": "prepare", "model": str(model), "calibration": str(traffic), "seed": 0, "task": None}
    numbers = {"records": 64, "held_out": 32, "max_tokens": 256}
    prepared = Worker(interpreter, folder, os.environ, Silent()).run("prepare", {**job, **numbers})
    return Sides(default(Device.CPU, 512), records_of(prepared["held_out"]), None, os.environ, Silent())


@pytest.fixture(scope="module")
def original(sides, model, tmp_path_factory):
    return sides.ask(model, "original", tmp_path_factory.mktemp("log") / "log", twice=True)


def test_the_original_itself_passes(sides, original, model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "copy")
    again = sides.ask(copy, "copy", tmp_path / "log", twice=False)
    found = judge(scores_of(original), scores_of(original, "again"), scores_of(again), Limits())
    assert found.verdict is Verdict.PASS, found.reasons
    assert found.checks[0].figure.value == pytest.approx(0.0, abs=1e-6)


def test_a_damaged_checkpoint_fails(sides, original, model, interpreter, tmp_path):
    folder = shutil.copytree(model, tmp_path / "damaged")
    program = """
import sys
from safetensors.torch import load_file, save_file
tensors = load_file(sys.argv[1])
tensors["model.layers.0.mlp.down_proj.weight"] *= 8
save_file(tensors, sys.argv[1], {"format": "pt"})
"""
    subprocess.run([str(interpreter), "-c", program, str(folder / "model.safetensors")], check=True)
    found = judge(
        scores_of(original),
        scores_of(original, "again"),
        scores_of(sides.ask(folder, "damaged", tmp_path / "log", twice=False)),
        Limits(),
    )
    assert found.verdict is Verdict.FAIL, found.reasons
