"""Steps of the worker that a quantization takes only when it must."""

import json
import os

import pytest

from launcher.quantize.worker_process import Worker
from tests.quantize.test_refusals import Silent

_UNITS = {
    "model.layers.0.self_attn.qkv_proj": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    "model.layers.0.self_attn.o_proj": ["self_attn.o_proj"],
    "model.layers.0.mlp.down_proj": ["mlp.down_proj"],
}


@pytest.fixture
def job(model, tmp_path):
    """What each step is told."""
    records = tmp_path / "records.json"
    records.write_text(json.dumps({"calibration": [[*range(start, start + 48)] for start in range(4, 200, 16)]}))
    return {"model": str(model), "records": str(records), "seed": 0}


def test_the_estimate_and_the_measurement_of_sensitivity_agree(interpreter, job, tmp_path):
    units = [
        {"name": name, "scheme": "int4", "group": 128, "layers": [f"model.layers.0.{layer}" for layer in layers]}
        for name, layers in _UNITS.items()
    ]
    # Twice the same units, since only the worst fifth is measured.
    others = [{**unit, "name": unit["name"].replace("0", "1"), "layers": _of_layer_1(unit)} for unit in units]
    told = {**job, "step": "sensitivity", "units": [*units, *others], "most_records": 8, "most_tokens": 48}
    found = Worker(interpreter, tmp_path, os.environ, Silent()).run("sensitivity", told)["units"]
    assert [each["name"] for each in found] == [unit["name"] for unit in told["units"]]
    assert all(each["fisher"] > 0 for each in found)
    measured = [each for each in found if each["kl"] is not None]
    assert len(measured) == 2
    assert min(each["fisher"] for each in measured) >= max(each["fisher"] for each in found if each["kl"] is None)
    assert all(each["fisher"] / 3 < each["kl"] < 3 * each["fisher"] for each in measured)


def _of_layer_1(unit):
    return [layer.replace("layers.0", "layers.1") for layer in unit["layers"]]


def test_awq_works_without_a_gpu(interpreter, job, tmp_path):
    groups = [{"scheme": "int4", "group": 128, "symmetric": True, "layers": None}]
    recipe = {"algorithm": "awq", "strength": 0.8, "groups": groups, "ignore": ["lm_head"]}
    told = {**job, "step": "quantize", "recipe": recipe, "out": str(tmp_path / "out")}
    found = Worker(interpreter, tmp_path, os.environ, Silent()).run("quantize", told)
    assert len(found["quantized"]) == 14
    assert found["strange"] == []
