"""How a checkpoint is quantized, read from its configuration."""

import pytest

from launcher.preflight import model_files, quantization
from tests.launcher.builders import case, faults, model_folder


def compressed(**weights):
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


SCHEMES = [
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
    ({"quant_method": "awq", "w_bit": 4}, "int4"),
    ({"quant_method": "gptq", "bits": 4, "sym": True}, "int4"),
    ({"quant_method": "gptq", "bits": 8}, "int8"),
    (compressed(num_bits=8, type="int"), "int8"),
    (compressed(num_bits=4, type="int"), "int4"),
    (compressed(num_bits=8, type="float"), "fp8"),
    ({**compressed(num_bits=8, type="int"), "quant_method": "compressed_tensors"}, "int8"),
    ({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, "fp8"),
    ({"quant_method": "FP8"}, "fp8"),
    ({"quant_method": "mxfp4"}, "mxfp4"),
    ({"quant_method": "compressed-tensors"}, "compressed-tensors"),
    (None, None),
    ({}, None),
]


@pytest.mark.parametrize(("config", "scheme"), SCHEMES)
def test_a_scheme_is_recognised(config, scheme):
    assert quantization.scheme(config) == scheme


def test_four_bit_floats_are_not_fp8():
    assert quantization.scheme(compressed(num_bits=4, type="float")) != "fp8"


def findings(folder, config, declared):
    folder = model_folder(folder, {"quantization_config": config})
    settled = case(
        "interactive", "model.id=null", f'model.path="{folder}"', f"quantization.checkpoint_scheme={declared}"
    )
    return faults(quantization.RULES, settled)


@pytest.mark.parametrize(("config", "scheme"), SCHEMES)
@pytest.mark.parametrize("declared", ["int4", "int8", "fp8"])
def test_another_scheme_than_declared_is_found(tmp_path, config, scheme, declared):
    found = findings(tmp_path, config, declared)
    if scheme == declared:
        assert not found
    else:
        (finding,) = found
        assert f"says {declared}, {tmp_path / 'config.json'} says {scheme or 'not quantized'}" in finding


def test_nothing_declared_is_not_compared(tmp_path):
    assert not findings(tmp_path, {"quant_method": "fp8"}, "null")


def test_a_hub_id_is_not_compared():
    assert not faults(quantization.RULES, case("single-gpu"))


def test_a_broken_configuration_is_a_finding(tmp_path):
    folder = model_folder(tmp_path)
    (folder / "config.json").write_text("{broken")
    settled = case("interactive", "model.id=null", f'model.path="{folder}"')
    assert not faults(quantization.RULES, settled)
    (finding,) = faults(model_files.RULES, settled)
    assert str(folder / "config.json") in finding
