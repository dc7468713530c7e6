"""What is said of quantized checkpoints: which layers, which figures, and what would work."""

import pytest

from launcher.preflight.finding import Severity
from tests.launcher.preflight.folders import (
    AWQ,
    FP8,
    GPTQ,
    W8A8,
    checkpoint,
    ct,
    drafted,
    in_awq,
    in_fp8,
    in_gptq,
    in_int8,
    in_packed,
    judged,
    pair,
    plain,
)

INT8, FLOAT8 = {"num_bits": 8}, {"num_bits": 8, "type": "float"}
BOTH = ("roles.prefill.tensor_parallel={0}", "roles.decode.tensor_parallel={0}")


def split(degree):
    return tuple(each.format(degree) for each in BOTH)


def quantized(folder, told, store, **more):
    config = {"quantization_config": told, **more.pop("config", {})}
    return checkpoint(folder, config, store, **more)


WHOLE = (
    *(("gptq", GPTQ, in_gptq), ("awq", AWQ, in_awq), ("packed", ct(), in_packed), ("int8", W8A8, in_int8)),
    ("none", {}, plain),
)
TOPICS = ("quantization/", "model/", "parallel/", "tokenizer/")


@pytest.mark.parametrize(("told", "store"), [each[1:] for each in WHOLE], ids=[each[0] for each in WHOLE])
@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_of_a_checkpoint_that_is_right_nothing_is_said(tmp_path, told, store, device, degree):
    folder = quantized(tmp_path, told, store)
    assert not judged(pair(folder, *split(degree), device=device), *TOPICS)


@pytest.mark.parametrize("degree", [1, 2])
def test_of_blocks_of_fp8_that_come_out_even_nothing_is_said(tmp_path, degree):
    on_hopper = ("roles.prefill.device_type=H100", "roles.decode.device_type=H100")
    assert not judged(pair(quantized(tmp_path, FP8, in_fp8), *split(degree), *on_hopper), *TOPICS)


def test_a_group_that_no_layer_of_a_size_divides_names_layers_figures_and_another_group(tmp_path):
    folder = quantized(tmp_path, ct(), in_packed, config={"intermediate_size": 1056})
    (fault,) = judged(pair(folder), "quantization/group-divides-layer")
    assert fault.key == "model.path"
    assert fault.what == (
        "groups of 128 weights do not come out even in 3 layers (model.layers.0.mlp.down_proj, "
        f"model.layers.1.mlp.down_proj, model.layers.2.mlp.down_proj) of {folder}: 1056 inputs"
    )
    assert fault.fix.startswith("quantize it again in groups of 32, or with these layers in `ignore`")


def test_a_size_that_no_group_divides_wants_one_scale_for_each_channel(tmp_path):
    folder = quantized(tmp_path, ct(), in_packed, config={"intermediate_size": 1000})
    (fault,) = judged(pair(folder), "quantization/group-divides-layer")
    assert fault.fix.startswith("quantize it again with one scale for each channel")


def test_a_folder_without_readable_weights_is_judged_by_its_configuration(tmp_path):
    told = {"quantization_config": ct(), "intermediate_size": 1000}
    folder = checkpoint(tmp_path, told)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    (fault,) = judged(pair(folder), "quantization/group-divides-layer")
    assert "3 layers (model.layers.0.mlp.down_proj" in fault.what


@pytest.mark.parametrize("kept", [[], ["re:.*vision.*"]])
def test_a_vision_tower_counts_unless_it_is_left_as_it_is(tmp_path, kept):
    told = {"quantization_config": ct(ignore=kept), "vision_config": {"hidden_size": 1280, "intermediate_size": 3420}}
    folder = checkpoint(tmp_path, told)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    found = judged(pair(folder), "quantization/group-divides-layer")
    assert ["vision_tower.layers.0.mlp.fc2" in each.what for each in found] == ([] if kept else [True])


@pytest.mark.parametrize(("told", "store"), [(GPTQ, in_gptq), (AWQ, in_awq), (ct(), in_packed)])
def test_a_group_that_is_cut_by_tensor_parallelism_names_the_degrees_that_work(tmp_path, told, store):
    folder = quantized(tmp_path, told, store)
    (first, second) = judged(pair(folder, *split(8)), "quantization/group-divides-shard")
    assert (first.key, second.key) == ("roles.prefill.tensor_parallel", "roles.decode.tensor_parallel")
    assert "with tensor_parallel 8 each device has 64 inputs of 3 layers (model.layers.0.self_attn.o_proj" in first.what
    assert first.fix == "set roles.prefill.tensor_parallel to 1, 2 or 4, or quantize it in groups of 64"


def test_inputs_that_are_not_split_are_not_cut(tmp_path):
    folder = quantized(tmp_path, ct(), in_packed, config={"hidden_size": 640, "num_attention_heads": 8})
    assert not judged(pair(folder, *split(4)), "quantization/group-divides-shard")


def test_only_the_role_that_splits_too_far_is_at_fault(tmp_path):
    folder = quantized(tmp_path, AWQ, in_awq)
    (fault,) = judged(pair(folder, "roles.decode.tensor_parallel=8"), "quantization/group-divides-shard")
    assert fault.key == "roles.decode.tensor_parallel"


def test_the_draft_is_judged_by_its_own_degree(tmp_path):
    draft = quantized(tmp_path / "draft", AWQ, in_awq)
    case = drafted(checkpoint(tmp_path / "model"), draft, "draft_model", *split(8))
    found = judged(case, "quantization/group-divides-shard")
    assert {each.key for each in found} == {"roles.prefill.tensor_parallel", "roles.decode.tensor_parallel"}
    assert "the draft" in found[0].what
    alone = drafted(
        checkpoint(tmp_path / "model"), draft, "draft_model", *split(8), "speculation.draft.tensor_parallel=1"
    )
    assert not judged(alone, "quantization/group-divides-shard")


def test_a_shard_of_14784_is_divided_by_64_and_not_by_128(tmp_path):
    folder = quantized(tmp_path, ct(), in_packed, config={"intermediate_size": 29568, "num_hidden_layers": 1})
    (fault, _) = judged(pair(folder, *split(2)), "quantization/group-divides-shard")
    assert "each device has 14784 inputs of 1 layer (model.layers.0.mlp.down_proj)" in fault.what
    assert fault.fix.endswith("quantize it in groups of 64")


def test_on_a_cpu_sizes_are_multiples_of_32_after_the_split(tmp_path):
    folder = quantized(tmp_path, ct(group=None), in_packed, config={"intermediate_size": 1056})
    assert not judged(pair(folder, device="cpu"), "quantization/cpu-shapes")
    (first, _) = judged(pair(folder, *split(2), device="cpu"), "quantization/cpu-shapes")
    assert "528 inputs and 512 outputs on each device in 3 layers (model.layers.0.mlp.down_proj" in first.what
    assert "set roles.prefill.tensor_parallel to 1" in first.fix
    assert not judged(pair(folder, *split(2)), "quantization/cpu-shapes")


def test_the_outputs_of_layers_that_become_one_are_added_up(tmp_path):
    folder = quantized(tmp_path, ct(group=None), in_packed, config={"head_dim": 72, "num_key_value_heads": 4})
    assert not judged(pair(folder, device="cpu"), "quantization/cpu-shapes")


def test_blocks_of_fp8_are_not_cut_either(tmp_path):
    folder = quantized(tmp_path, FP8, in_fp8, config={"intermediate_size": 1152})
    (fault, _) = judged(pair(folder, *split(2)), "quantization/blocks-divide-shard")
    assert "576 outputs of 9 layers (model.layers.0.mlp.gate_proj" in fault.what
    assert "blocks of 128 x 128" in fault.what
    assert fault.fix == "set roles.prefill.tensor_parallel to 1"


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({**GPTQ, "sym": False}, "sym: false"),
        ({**GPTQ, "bits": 3}, "in 3 bits"),
        ({**GPTQ, "desc_act": True}, "desc_act: true"),
        ({**AWQ, "bits": 8}, "by AWQ in 8 bits"),
    ],
)
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_variants_that_the_engine_refuses_are_named(tmp_path, told, what, device):
    (fault,) = judged(pair(quantized(tmp_path, told, in_gptq), device=device), "quantization/variant")
    assert what in fault.what


def test_the_order_of_activations_does_not_matter_with_one_scale_for_each_channel(tmp_path):
    folder = quantized(tmp_path, {**GPTQ, "desc_act": True, "group_size": -1}, in_gptq)
    assert not judged(pair(folder), "quantization/variant", "quantization/group-size")


def test_an_order_of_activations_of_groups_is_refused(tmp_path):
    told = ct()
    told["config_groups"]["group_0"]["weights"]["actorder"] = "group"
    (fault,) = judged(pair(quantized(tmp_path, told, in_packed)), "quantization/variant")
    assert "with actorder: group" in fault.what


@pytest.mark.parametrize(
    ("weights", "inputs", "form", "known"),
    [
        ({"num_bits": 4, "group_size": 128, "symmetric": False}, None, "pack-quantized", True),
        ({"num_bits": 4, "group_size": 128}, None, "int-quantized", False),
        (INT8 | {"strategy": "channel"}, INT8 | {"dynamic": True, "strategy": "token"}, "int-quantized", True),
        (INT8 | {"strategy": "group", "group_size": 64}, INT8 | {"dynamic": True}, "int-quantized", False),
        (FLOAT8 | {"strategy": "channel"}, FLOAT8 | {"dynamic": True}, "float-quantized", True),
        (FLOAT8 | {"strategy": "channel"}, None, "float-quantized", True),
        (FLOAT8 | {"num_bits": 4, "strategy": "tensor_group", "group_size": 16}, None, "nvfp4-pack-quantized", True),
        ({"num_bits": 4, "group_size": 128}, None, "marlin-24", False),
    ],
)
def test_what_the_engine_has_a_scheme_for_is_known(tmp_path, weights, inputs, form, known):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    told = {"quant_method": "compressed-tensors", "format": form, "config_groups": {"g": group}}
    found = judged(pair(quantized(tmp_path, told, plain)), "quantization/known-scheme")
    assert bool(found) is not known


def test_a_sparse_checkpoint_is_refused(tmp_path):
    told = ct(sparsity_config={"format": "sparse-24-bitmask", "targets": ["Linear"]})
    (fault,) = judged(pair(quantized(tmp_path, told, in_packed)), "quantization/known-scheme")
    assert "is sparse" in fault.what


@pytest.mark.parametrize("told", [GPTQ, AWQ, ct()])
def test_weights_of_16_bits_under_a_quantized_configuration_are_found(tmp_path, told):
    (fault,) = judged(pair(quantized(tmp_path, told, plain)), "quantization/as-stored")
    assert fault.what.startswith(f"21 layers of {tmp_path} are BF16 (model.layers.0.self_attn.q_proj, ")
    assert fault.severity is Severity.ERROR


def test_quantized_weights_under_a_configuration_that_says_nothing_are_found(tmp_path):
    (fault,) = judged(pair(checkpoint(tmp_path, store=in_packed)), "quantization/as-stored")
    assert "are quantized (I32)" in fault.what
    assert "says nothing of it" in fault.what


def test_a_layer_that_is_ignored_and_quantized_all_the_same_is_found(tmp_path):
    folder = quantized(tmp_path, ct(ignore=["lm_head", "re:.*down_proj"]), in_packed)
    (fault,) = judged(pair(folder), "quantization/as-stored")
    assert "3 layers" in fault.what
    assert "leaves them as they are" in fault.what


def test_the_parts_of_one_layer_of_the_engine_must_be_alike(tmp_path):
    told = ct(ignore=["lm_head", "model.layers.1.self_attn.q_proj"])
    folder = quantized(tmp_path, told, in_packed, but={"layers.1.self_attn.q_proj": plain})
    (fault,) = judged(pair(folder), "quantization/fused-alike")
    assert fault.what.startswith(f"model.layers.1.self_attn.qkv_proj of {tmp_path} is one layer in the engine")
    assert "(q_proj 16 bits, k_proj int4 by 128, v_proj int4 by 128)" in fault.what


def test_parts_that_are_all_left_as_they_are_are_alike(tmp_path):
    told = ct(ignore=["lm_head", "re:.*self_attn.*"])
    assert not judged(pair(quantized(tmp_path, told, in_packed, but={"self_attn": plain})), "quantization/fused-alike")


def test_experts_that_were_left_out_are_told_with_their_share(tmp_path):
    experts = {f"model.layers.0.mlp.experts.{n}.up_proj.weight": ("BF16", (1024, 512)) for n in range(4)}
    shapes = {**experts, **in_packed("model.layers.0.self_attn.o_proj", 512, 512)}
    (fault,) = judged(pair(quantized(tmp_path, ct(), plain, shapes=shapes)), "quantization/experts")
    assert "none of the 4 weights of experts" in fault.what
    assert "89% of its numbers" in fault.what
    assert fault.severity is Severity.WARNING


def test_experts_in_one_tensor_count_too(tmp_path):
    shapes = {
        "model.layers.0.mlp.experts.gate_up_proj": ("BF16", (4, 1024, 512)),
        **in_packed("model.layers.0.self_attn.o_proj", 512, 512),
    }
    (fault,) = judged(pair(quantized(tmp_path, ct(), plain, shapes=shapes)), "quantization/experts")
    assert "none of the 1 weights of experts" in fault.what


def test_a_quantized_output_that_is_the_embedding_is_told(tmp_path):
    shapes = {**in_packed("lm_head", 256, 512), **in_packed("model.layers.0.self_attn.o_proj", 512, 512)}
    folder = quantized(tmp_path, ct(ignore=[]), plain, shapes=shapes, config={"tie_word_embeddings": True})
    (fault,) = judged(pair(folder), "quantization/embedding-and-output")
    assert "tie_word_embeddings" in fault.what
    assert fault.severity is Severity.WARNING


def test_layers_behind_the_last_and_towers_may_be_as_they_were(tmp_path):
    shapes = {
        **in_packed("model.layers.0.self_attn.o_proj", 512, 512),
        **plain("model.layers.3.self_attn.o_proj", 512, 512),
        **plain("visual.blocks.0.mlp.up_proj", 512, 512),
    }
    assert not judged(pair(quantized(tmp_path, ct(), plain, shapes=shapes)), "quantization/as-stored")
