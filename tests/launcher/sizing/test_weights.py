"""The bytes of weights on one device, counted and from tensors."""

import pytest

from launcher.model_folder import Tensor
from launcher.sizing.matrices import matrices, mtp_matrices, parameters
from launcher.sizing.scheme import UnknownSchemeError, online, scheme_of
from launcher.sizing.weights import Sharding, counted, measured
from tests.launcher.sizing.models import NAMES, architecture, said

WHOLE = Sharding()


def tensors(model):
    """What a 16-bit checkpoint of it would hold."""
    for matrix in matrices(model):
        shape = (matrix.copies, matrix.rows, matrix.columns)
        yield Tensor(f"{matrix.name}.weight", "BF16", shape, 2 * matrix.parameters, "model.safetensors")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sharding", [WHOLE, Sharding(tensor=2), Sharding(tensor=16), Sharding(pipeline=3)])
def test_tensors_and_configuration_come_to_the_same(name, sharding):
    model = architecture(name)
    from_tensors = measured(tensors(model), 2, model, sharding)
    assert from_tensors == pytest.approx(counted(matrices(model), None, 2, model, sharding), rel=0.001)


def test_devices_share_matrices_and_each_has_norms_and_routers():
    model = architecture("llama-3.1-8b")
    whole, half = (counted(matrices(model), None, 2, model, Sharding(tensor=width)) for width in (1, 2))
    norms = 2 * 65 * 4096
    assert half == (whole - norms) // 2 + norms


def test_heads_that_do_not_divide_are_on_several_devices():
    model = architecture("llama-3.1-70b")
    at_8, at_16 = (counted(matrices(model), None, 2, model, Sharding(tensor=width)) for width in (8, 16))
    keys_and_values, norms = 2 * 80 * 2 * 1024 * 8192, 2 * 161 * 8192
    assert at_16 - norms == pytest.approx((at_8 - norms - keys_and_values / 8) / 2 + keys_and_values / 8, rel=1e-6)


def test_a_vocabulary_is_rounded_up_to_a_multiple_of_64():
    model = architecture("phi-3-mini-4k")
    whole = counted(matrices(model), None, 2, model, WHOLE)
    assert whole - 2 * parameters(matrices(model)) == 2 * 2 * 3072 * (-32064 % 64)


def test_with_expert_parallelism_whole_experts_are_spread_over_all_ranks():
    model = architecture("qwen3-30b-a3b")
    alone = counted(matrices(model), None, 2, model, Sharding(tensor=1, data=4))
    spread = counted(matrices(model), None, 2, model, Sharding(tensor=1, data=4, experts=True))
    experts = 2 * 48 * 128 * 3 * 2048 * 768
    assert alone - spread == experts * 3 // 4


def test_the_ends_of_a_pipeline_have_embedding_and_output():
    model = architecture("llama-3.1-8b")
    whole, half = (counted(matrices(model), None, 2, model, Sharding(pipeline=stages)) for stages in (1, 2))
    embedding = 2 * 128256 * 4096
    assert half == pytest.approx((whole - 2 * embedding) / 2 + 2 * embedding, rel=0.001)


def test_a_tied_output_is_loaded_once():
    model = architecture("qwen3-0.6b")
    assert model.tied
    head = Tensor("lm_head.weight", "BF16", (151936, 1024), 2 * 151936 * 1024, "x")
    assert measured([*tensors(model), head], 2, model, WHOLE) == measured(tensors(model), 2, model, WHOLE)


def test_floats_become_what_the_engine_computes_in_and_scales_stay():
    model = architecture("llama-3.2-1b")
    weight = Tensor("model.layers.0.mlp.up_proj.weight", "F32", (10, 10), 400, "x")
    scale = Tensor("model.layers.0.mlp.up_proj.weight_scale", "F32", (10, 1), 40, "x")
    packed = Tensor("model.layers.0.mlp.up_proj.weight_packed", "I32", (10, 2), 80, "x")
    assert [measured([tensor], 2, model, WHOLE) for tensor in (weight, scale, packed)] == [200, 40, 80]
    assert measured([weight], 4, model, WHOLE) == 400


@pytest.mark.parametrize("name", ["model.layers.61.mlp.up_proj.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"])
def test_what_the_engine_leaves_out_does_not_count(name):
    assert measured([Tensor(name, "BF16", (8, 8), 128, "x")], 2, architecture("deepseek-v3"), WHOLE) == 0


def test_layers_that_only_draft_are_counted_apart():
    model = architecture("deepseek-v3")
    assert parameters(mtp_matrices(model)) == pytest.approx(11.6e9, rel=0.01)
    assert parameters(matrices(model, with_mtp=True)) == parameters(matrices(model)) + parameters(mtp_matrices(model))


@pytest.mark.parametrize(
    ("name", "scheme", "size"),
    [
        ("llama-3.1-8b-w8a8", "int8 w8a8", 100 * 4096 + 100 * 2),
        ("llama-3.1-70b-w4a16", "int4 w4a16", 100 * 4096 // 2 + 100 * 32 * 2),
        ("qwen3-14b-awq", "int4 awq", 100 * 4096 // 2 + 100 * 32 * 2 + 100 * 32 // 2),
        ("llama-3.1-8b-fp8", "fp8 w8a8", 100 * 4096 + 100 * 2),
        ("deepseek-v3", "fp8 in blocks", 100 * 4096 + 32 * 4),
        ("gpt-oss-20b", "mxfp4", 100 * 4096 // 2 + 100 * 128),
    ],
)
def test_a_quantized_matrix_has_its_scales(name, scheme, size):
    found = scheme_of(said(name)["config"]["quantization_config"])
    assert (found.name, found.size(100, 4096)) == (scheme, size)


@pytest.mark.parametrize(
    ("kept", "module", "applies"),
    [
        (["lm_head"], "lm_head", False),
        (["lm_head"], "model.layers.0.mlp.up_proj", True),
        (["re:.*self_attn.*"], "model.layers.0.self_attn.q_proj", False),
        (["model.layers.0.mlp"], "model.layers.0.mlp.up_proj", False),
        (["re:("], "model.layers.0.mlp.up_proj", True),
    ],
)
def test_modules_that_stay_as_they_are_are_named_or_matched(kept, module, applies):
    scheme = scheme_of({"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": kept})
    assert scheme.applies(module) is applies


def test_only_experts_are_quantized_where_the_format_says_so():
    scheme = scheme_of({"quant_method": "mxfp4"})
    assert not scheme.applies("model.layers.0.self_attn.q_proj")
    assert scheme.applies("model.layers.0.mlp.experts.0.up_proj")


@pytest.mark.parametrize(
    "told",
    [{"quant_method": "quark"}, {"quant_method": "awq"}, {"quant_method": "compressed-tensors"}, {"bits": "4"},
     {"quant_method": "compressed-tensors", "config_groups": {"group_0": None}}],
)  # fmt: skip
def test_a_scheme_that_is_not_known_is_said_not_guessed(told):
    with pytest.raises(UnknownSchemeError):
        scheme_of(told)


def test_no_quantization_is_no_scheme():
    assert scheme_of({}) is None
    assert online("awq") is None
    assert online("mxfp8").size(10, 64) == 10 * 64 + 10 * 2


@pytest.mark.parametrize("quantization", [{"quant_method": "modelopt", "quant_algo": "FP8"}, {"quant_method": "fp8"}])
def test_eight_bits_by_any_name_are_one_byte(quantization):
    assert scheme_of(quantization).size(10, 10) == 100
