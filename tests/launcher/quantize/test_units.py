"""What of a model is quantized, and in which units?"""

import pytest

from launcher import model_folder
from launcher.errors import QuantizeError
from launcher.quantize.units import group_size, odd_layers, parts_of, without
from tests.launcher.preflight.folders import CONFIG, GPTQ, checkpoint, in_gptq, in_int8, llama, plain


def parts(folder, config=None, **more):
    return parts_of(model_folder.read(checkpoint(folder / "model", config, **more)))


def test_what_the_engine_makes_one_layer_of_is_one_unit(tmp_path):
    found = parts(tmp_path)
    assert [unit.name for unit in found.units[:4]] == [
        "model.layers.0.self_attn.qkv_proj",
        "model.layers.0.self_attn.o_proj",
        "model.layers.0.mlp.gate_up_proj",
        "model.layers.0.mlp.down_proj",
    ]
    assert [layer.last for layer in found.units[0].layers] == ["q_proj", "k_proj", "v_proj"]
    assert found.units[0].parameters == 512 * (512 + 256 + 256)
    assert len(found.units) == 4 * 3


def test_output_routers_and_towers_stay_as_they_are(tmp_path):
    shapes = llama(CONFIG) | plain("model.layers.0.mlp.gate", 8, 512) | plain("vision_tower.layers.0.fc1", 64, 64)
    assert parts(tmp_path, shapes=shapes).ignored == (
        "lm_head",
        "model.layers.0.mlp.gate",
        "vision_tower.layers.0.fc1",
    )


def test_all_experts_of_a_layer_are_one_unit(tmp_path):
    experts = [f"model.layers.0.mlp.experts.{number}.{part}" for number in range(4) for part in ("w1", "w2")]
    shapes = llama(CONFIG)
    for name in experts:
        shapes |= plain(name, 128, 128)
    (unit,) = [each for each in parts(tmp_path, shapes=shapes).units if each.name.endswith("experts")]
    assert [layer.name for layer in unit.layers] == experts


@pytest.mark.parametrize(
    ("config", "more", "said"),
    [
        ({"quantization_config": GPTQ}, {"store": in_gptq}, "already quantized .gptq.: give the 16-bit original"),
        ({}, {"store": in_int8}, "is stored as I8"),
        ({}, {"shapes": {"model.norm.weight": ("BF16", (512,))}}, "no linear layers"),
    ],
)
def test_what_cannot_be_quantized_is_refused(tmp_path, config, more, said):
    with pytest.raises(QuantizeError, match=said):
        parts(tmp_path, config, **more)


def test_a_folder_without_weights_is_refused(tmp_path):
    folder = checkpoint(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(QuantizeError, match="no whole set of safetensors files"):
        parts_of(model_folder.read(folder))


@pytest.mark.parametrize(
    ("inner", "split", "group"),
    [(1024, 1, 128), (1024, 8, 64), (1024, 16, 32), (1088, 1, 64), (1056, 1, 32), (1000, 1, None)],
)
def test_a_group_is_the_largest_that_divides_what_each_device_has(tmp_path, inner, split, group):
    units = parts(tmp_path, {"intermediate_size": inner}).units
    assert group_size(units, split) == group


def test_layers_whose_inputs_a_group_does_not_divide_are_named(tmp_path):
    units = parts(tmp_path, {"intermediate_size": 1088}).units
    assert odd_layers(units, 1, 128) == [f"model.layers.{number}.mlp.down_proj" for number in range(3)]


def test_whole_units_can_be_left_in_16_bits(tmp_path):
    left = without(parts(tmp_path), ["re:.*layers\\.0\\.self_attn\\.[qkv]_proj", "model.layers.2.mlp.down_proj"])
    assert left.ignored[1:] == (
        "model.layers.0.self_attn.k_proj",
        "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.v_proj",
        "model.layers.2.mlp.down_proj",
    )
    assert len(left.units) == 10


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("re:.*\\.q_proj", "qkv_proj.* name all of them or none"),
        ("model.layers.9.mlp.down_proj", "no layer is called so; layers are called like model.layers.0"),
        ("re:.*(", "--ignore re:"),
        ("re:.*", "leaves no layer"),
    ],
)
def test_a_name_that_means_nothing_or_half_a_unit_is_refused(tmp_path, pattern, said):
    with pytest.raises(QuantizeError, match=said):
        without(parts(tmp_path), [pattern])
