"""What vLLM 0.32 can do is not refused: each was once, or nearly."""

import pytest

from launcher import preflight
from launcher.preflight.finding import Severity
from tests.launcher.builders import case, model_folder, write
from tests.launcher.preflight.examples import FP8, MLA, of_kind, quantized

PAIR = "description: x\ndevice: {device}\nmodel: {{path: {folder}}}\nroles: {{prefill: {given}, decode: {given}}}\n"
MTP = "speculation={method: mtp, num_speculative_tokens: 1}"
SCALED = {"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
HYBRID_IN_NAME = {"mamba_d_state": 128, "layer_types": ["attention", "attention"]}
FILES = "kv_transfer.connector=shared-storage"

WORKS = {
    "multi-token prediction of a kind that counts no layers": ("cuda", {"model_type": "qwen3_next"}, (MTP,)),
    "of a kind that counts them elsewhere": ("cuda", {"model_type": "minimax_m3", "num_mtp_modules": 1}, (MTP,)),
    "weights in INT8 with 16-bit activations on Blackwell": ("cuda", quantized("gptq", bits=8), of_kind("B200")),
    "GPTQ on Volta": ("cuda", quantized("gptq", bits=4), of_kind("V100")),
    "a KV cache in NVFP4 on Hopper": ("cuda", {}, (*of_kind("H100"), "quantization.kv_cache_dtype=nvfp4")),
    "blocks of 16 for latent attention on a CPU": (
        "cpu",
        MLA,
        ("roles.prefill.block_size=16", "roles.decode.block_size=16"),
    ),
    "a quantized checkpoint in 32 bits, computed in 16": ("cuda", {**quantized("awq", bits=4), "dtype": "float32"}, ()),
    "MXFP4 experts on a CPU": ("cpu", {**quantized("mxfp4"), "num_local_experts": 8}, ()),
    "stages with Mooncake": (
        "cuda",
        {},
        (
            "kv_transfer.connector=mooncake",
            "roles.prefill.pipeline_parallel=2",
            "roles.decode.pipeline_parallel=2",
        ),
    ),
    "files for a model with recurrent layers in its name only": ("cuda", HYBRID_IN_NAME, (FILES,)),
    "a KV cache of a given size and what must be free": (
        "cuda",
        {},
        ("roles.decode={kv_cache_memory: 1GiB, gpu_memory_utilization: 0.4}",),
    ),
    "a checkpoint of a plugin's kind": ("cuda", quantized("gguf"), ()),
    "e5m2 for weights in FP8 with latent attention": (
        "cuda",
        {**MLA, "quantization_config": FP8},
        ("quantization.kv_cache_dtype=fp8_e5m2",),
    ),
}


def findings(tmp_path, device, config, overrides):
    folder = model_folder(tmp_path / "model", config)
    given = "{kv_cache_memory: 1GiB}" if device == "cpu" else "{}"
    judged = case(write(tmp_path, PAIR.format(device=device, folder=folder, given=given)), *overrides)
    return [*preflight.judge(judged, {preflight.Layer.STATIC})]


@pytest.mark.parametrize(("device", "config", "overrides"), WORKS.values(), ids=WORKS)
def test_it_is_not_refused(tmp_path, device, config, overrides):
    found = findings(tmp_path, device, config, overrides)
    assert not [each.fault.message for each in found if each.fault.severity is Severity.ERROR]


def test_positions_that_are_scaled_are_as_long_as_the_engine_takes_them(tmp_path):
    def names(length):
        return {each.rule for each in findings(tmp_path, "cuda", SCALED, (f"model.max_model_len={length}",))}

    assert "model/longer-than-trained" not in names(16384)
    assert "model/longer-than-trained" in names(16385)


SEGMENTS = "PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'"


@pytest.mark.parametrize(
    ("overrides", "environ"),
    [
        ((f"env.{SEGMENTS}", "engine_args.enable-sleep-mode=true"), {}),
        ((f"env.{SEGMENTS}", "engine_args.enable_cumem_allocator=true"), {}),
        (("env.PYTORCH_CUDA_ALLOC_CONF=''",), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        (("env.HF_HUB_OFFLINE=no",), {"HF_HUB_CACHE": "/nowhere"}),
    ],
)
def test_variables_that_the_engine_takes_are_not_refused(overrides, environ):
    judged = case("api-throughput", *overrides, environ=environ)
    found = [*preflight.judge(judged, {preflight.Layer.STATIC})]
    assert not [each.fault.message for each in found if each.fault.severity is Severity.ERROR]
