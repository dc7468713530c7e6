"""What is tried, in which order, and which units may stay finer?"""

import pytest

from launcher import model_folder
from launcher.quantize.recipe import Algorithm, Step, kept, planned, recipe, steps
from launcher.quantize.scheme import Scheme
from launcher.quantize.units import parts_of
from tests.launcher.preflight.folders import checkpoint


@pytest.fixture
def parts(tmp_path):
    return parts_of(model_folder.read(checkpoint(tmp_path / "model")))


@pytest.mark.parametrize(
    ("scheme", "how", "order"),
    [
        (Scheme.INT8, {}, ["smoothquant+gptq 0", "smoothquant+gptq 0.1", "smoothquant+gptq 0.2"]),
        (Scheme.INT8, {"fast": True}, ["rtn 0", "smoothquant+gptq 0", "smoothquant+gptq 0.1", "smoothquant+gptq 0.2"]),
        (Scheme.INT4, {}, ["gptq 0", "gptq 0.1", "gptq 0.2"]),
        (Scheme.INT4, {"accelerated": True}, ["gptq 0", "awq 0", "awq 0.1", "awq 0.2"]),
        (Scheme.INT4, {"given": Algorithm.AWQ}, ["awq 0", "awq 0.1", "awq 0.2"]),
        (Scheme.FP8, {"fast": True}, ["rtn 0", "rtn 0.1", "rtn 0.2"]),
    ],
)
def test_a_better_algorithm_is_tried_before_finer_weights(scheme, how, order):
    usual = {"fast": False, "accelerated": False, "given": None}
    assert [f"{each.algorithm.value} {each.budget:g}" for each in steps(scheme, **usual | how)] == order


def test_units_that_hurt_most_for_their_size_are_kept(parts):
    scores = {unit.name: 0.001 for unit in parts.units} | {"model.layers.1.mlp.down_proj": 1.0}
    assert kept(scores, parts.units, 0.1) == ("model.layers.1.mlp.down_proj",)


def test_no_more_is_kept_than_the_budget(parts):
    scores = {unit.name: 1.0 for unit in parts.units}
    size = sum(unit.parameters for unit in parts.units)
    chosen = kept(scores, parts.units, 0.2)
    assert 0 < sum(unit.parameters for unit in parts.units if unit.name in chosen) <= 0.2 * size


def test_nothing_is_kept_where_nothing_hurts(parts):
    assert kept({unit.name: 0.0 for unit in parts.units}, parts.units, 0.5) == ()


def test_all_layers_are_planned_but_those_that_are_ignored(parts):
    told = recipe(Step(Algorithm.GPTQ), Scheme.INT4, parts, 64)
    assert told["groups"] == [{"scheme": "int4", "group": 64, "symmetric": True, "layers": None}]
    assert told["ignore"] == ["lm_head"]
    assert len(planned(told, parts)) == 7 * 3


def test_units_that_eight_bits_harm_stay_in_16(parts):
    finer = ["model.layers.0.self_attn.qkv_proj"]
    told = recipe(Step(Algorithm.RTN, 0.1), Scheme.INT8, parts, None, finer)
    names = [f"model.layers.0.self_attn.{each}_proj" for each in "qkv"]
    assert told["ignore"] == ["lm_head", *names]
    assert planned(told, parts) == {layer.name for unit in parts.units for layer in unit.layers} - {*names}


def test_units_that_four_bits_harm_get_eight(parts):
    finer = ["model.layers.0.mlp.down_proj"]
    told = recipe(Step(Algorithm.GPTQ, 0.1), Scheme.INT4, parts, 64, finer)
    four, eight = told["groups"]
    assert (eight["scheme"], eight["layers"]) == ("int8", ["model.layers.0.mlp.down_proj"])
    assert len(four["layers"]) == 7 * 3 - 1
    assert planned(told, parts) == {*four["layers"], *eight["layers"]}


def test_they_stay_in_16_where_the_hardware_has_no_eight(parts):
    finer = ["model.layers.0.mlp.down_proj"]
    told = recipe(Step(Algorithm.GPTQ, 0.1), Scheme.INT4, parts, 64, finer, has_int8=False)
    assert told["ignore"] == ["lm_head", "model.layers.0.mlp.down_proj"]
