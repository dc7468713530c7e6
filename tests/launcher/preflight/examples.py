"""For every combination that preflight knows: a profile in which it is found, and one like it in which it is not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

W8A16 = {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int"}}}}
W8A8 = {
    "quant_method": "compressed-tensors",
    "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}},
}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
MOE = {"num_local_experts": 8}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
MAMBA = {"layer_types": ["linear_attention", "full_attention"]}
NGRAM = "speculation={method: ngram, num_speculative_tokens: 3}"
DRAFT = "speculation={method: draft_model, num_speculative_tokens: 3, draft: {model: /draft}}"
FOUR = ("roles.prefill.tensor_parallel=4", "roles.decode.tensor_parallel=4")
TWO = "roles.decode.tensor_parallel=2"


@dataclass(frozen=True)
class Example:
    """Overrides of a pair of prefill and decode on ``device``, and of the model's config.json."""

    found: tuple[str, ...]
    not_found: tuple[str, ...] = ()
    device: str = "cuda"
    config: Mapping[str, object] = field(default_factory=dict)
    fine_config: Mapping[str, object] | None = None
    """Of the second profile, where that is what differs."""


def cpu(*found: str, **more: object) -> Example:
    return Example(found, device="cpu", **more)  # type: ignore[arg-type]


def cuda(*found: str, **more: object) -> Example:
    return Example(found, **more)  # type: ignore[arg-type]


def of_kind(kind: str) -> tuple[str, ...]:
    return (f"roles.prefill.device_type={kind}", f"roles.decode.device_type={kind}")


def quantized(method: str, **more: object) -> dict[str, object]:
    return {"quantization_config": {"quant_method": method, **more}}


EXAMPLES: Mapping[str, Example] = {
    "quantization/online-on-cpu": cpu("quantization.weights=fp8_per_tensor"),
    "quantization/online-of-quantized-checkpoint": cuda(
        "quantization.weights=fp8_per_tensor",
        not_found=("quantization.weights=fp8_per_tensor",),
        config={"quantization_config": FP8},
        fine_config={},
    ),
    "quantization/float32": cuda("model.dtype=float32", config=quantized("awq", bits=4)),
    "quantization/mxfp4-dtype": cuda(
        "model.dtype=float16", not_found=("model.dtype=bfloat16",), config=quantized("mxfp4")
    ),
    "quantization/fp8-blocks-on-cpu": cpu(
        config=quantized("fp8", weight_block_size=[128, 128]), fine_config=quantized("fp8")
    ),
    "quantization/fp4-on-cpu": cpu(
        "quantization.checkpoint_scheme=fp4", not_found=("quantization.checkpoint_scheme=mxfp4",)
    ),
    "quantization/mxfp4-on-cpu": cpu(config=quantized("mxfp4"), fine_config={**quantized("mxfp4"), **MOE}),
    "quantization/mxfp4-experts-on-cpu": cpu(config={**quantized("mxfp4"), **MOE}, fine_config=MOE),
    "quantization/fp8-slow-on-cpu": cpu(config={"quantization_config": FP8}, fine_config={"quantization_config": W8A8}),
    "quantization/int8-experts-on-cpu": cpu(
        config={"quantization_config": W8A8, **MOE}, fine_config={"quantization_config": W8A8}
    ),
    "quantization/gptq-on-cpu": cpu(config=quantized("gptq", bits=8), fine_config=quantized("gptq", bits=4)),
    "quantization/plugin": cuda(config=quantized("bitsandbytes"), fine_config=quantized("awq", bits=4)),
    "quantization/int8-on-blackwell": cuda(
        *of_kind("B200"),
        not_found=of_kind("B200"),
        config={"quantization_config": W8A8},
        fine_config={"quantization_config": W8A16},
    ),
    "quantization/int8-perhaps-on-blackwell": cuda(
        *of_kind("B200"),
        "quantization.checkpoint_scheme=int8",
        not_found=(*of_kind("B200"), "quantization.checkpoint_scheme=int8"),
        fine_config=quantized("gptq", bits=8),
    ),
    "quantization/needs-turing": cuda(
        *of_kind("V100"),
        not_found=of_kind("V100"),
        config=quantized("awq", bits=4),
        fine_config=quantized("gptq", bits=4),
    ),
    "quantization/fp8-without-tensor-cores": cuda(
        *of_kind("A100"),
        "quantization.checkpoint_scheme=fp8",
        not_found=(*of_kind("L40S"), "quantization.checkpoint_scheme=fp8"),
    ),
    "quantization/online-fp8-capability": cuda(
        *of_kind("A10G"),
        "quantization.weights=fp8_per_block",
        not_found=(*of_kind("H200"), "quantization.weights=fp8_per_block"),
    ),
    "quantization/nvfp4-capability": cuda(
        *of_kind("H100"),
        "quantization.weights=nvfp4_per_token",
        not_found=(*of_kind("B200"), "quantization.weights=nvfp4_per_token"),
    ),
    "quantization/experts-only": cuda(
        "quantization.weights=nvfp4_per_token", not_found=("quantization.weights=nvfp4_per_token",), fine_config=MOE
    ),
    "quantization/weights-differ": cuda(
        "roles.prefill.quantization={weights: fp8_per_tensor}",
        not_found=("quantization={weights: fp8_per_tensor}",),
    ),
    "kv-cache/dtype-on-cpu": cpu("quantization.kv_cache_dtype=nvfp4", not_found=("quantization.kv_cache_dtype=fp8",)),
    "kv-cache/fp8-transfer-on-cpu": cpu(
        "quantization.kv_cache_dtype=fp8", TWO, not_found=("quantization.kv_cache_dtype=fp8",)
    ),
    "kv-cache/fp8-without-scales": cuda(
        "quantization.kv_cache_dtype=fp8",
        not_found=("quantization.kv_cache_dtype=fp8",),
        config={"quantization_config": W8A8},
        fine_config={"quantization_config": {**W8A8, "kv_cache_scheme": {"num_bits": 8}}},
    ),
    "kv-cache/fp8-capability": cuda(
        *of_kind("A100"),
        "quantization.kv_cache_dtype=fp8",
        not_found=(*of_kind("H100"), "quantization.kv_cache_dtype=fp8"),
    ),
    "kv-cache/fp4-capability": cuda(
        *of_kind("T4"),
        "quantization.kv_cache_dtype=nvfp4",
        not_found=(*of_kind("H100"), "quantization.kv_cache_dtype=nvfp4"),
    ),
    "kv-cache/fp4-of-blackwell": cuda(
        *of_kind("RTX 5090"),
        "quantization.kv_cache_dtype=nvfp4_4over6",
        not_found=(*of_kind("B200"), "quantization.kv_cache_dtype=nvfp4_4over6"),
    ),
    "kv-cache/e5m2-of-fp8-checkpoint": cuda(
        "quantization.kv_cache_dtype=fp8_e5m2",
        not_found=("quantization.kv_cache_dtype=fp8_e5m2",),
        config={"quantization_config": FP8},
        fine_config={"quantization_config": W8A8},
    ),
    "kv-cache/latent-only": cuda(
        "quantization.kv_cache_dtype=fp8_ds_mla", not_found=("quantization.kv_cache_dtype=fp8_ds_mla",), fine_config=MLA
    ),
    "speculation/method-on-cpu": cpu("speculation={method: ngram_gpu, num_speculative_tokens: 3}", not_found=(NGRAM,)),
    "speculation/mlp-speculator": cuda(
        "speculation={method: mlp_speculator, num_speculative_tokens: 3, draft: {model: /draft}}", not_found=(NGRAM,)
    ),
    "speculation/none-in-prefill": cuda(
        "roles.prefill.speculation={method: ngram, num_speculative_tokens: 3}",
        not_found=("roles.decode.speculation={method: ngram, num_speculative_tokens: 3}",),
    ),
    "speculation/draft-parallel": cuda(
        *FOUR,
        DRAFT,
        "speculation.draft.tensor_parallel=2",
        not_found=(*FOUR, DRAFT, "speculation.draft.tensor_parallel=4"),
    ),
    "speculation/draft-model-parallel": cuda(TWO, DRAFT, "speculation.draft.tensor_parallel=1", not_found=(TWO, DRAFT)),
    "speculation/schedule-and-data-parallel": cuda(
        "roles.decode.data_parallel=2",
        NGRAM,
        "speculation.schedule=[[1, 4, 3], [5, 99, 0]]",
        not_found=(NGRAM, "speculation.schedule=[[1, 4, 3], [5, 99, 0]]"),
    ),
    "speculation/pipeline-parallel": cuda(
        NGRAM, "roles.decode.pipeline_parallel=2", not_found=("roles.decode.pipeline_parallel=2",)
    ),
    "speculation/large-batches": cuda(
        NGRAM, "roles.decode.max_num_seqs=65", not_found=(NGRAM, "roles.decode.max_num_seqs=64")
    ),
    "speculation/many-tokens": cuda("speculation={method: ngram, num_speculative_tokens: 17}", not_found=(NGRAM,)),
    "speculation/heads-of-the-model": cuda(
        "speculation={method: mtp, num_speculative_tokens: 1}",
        not_found=("speculation={method: mtp, num_speculative_tokens: 1}",),
        config={"model_type": "llama"},
        fine_config={"model_type": "qwen3_next"},
    ),
    "speculation/lora": cuda(
        DRAFT, "model.lora={adapters: {a: /a}}", not_found=(NGRAM, "model.lora={adapters: {a: /a}}")
    ),
    "speculation/recurrent-model": cuda(NGRAM, not_found=(NGRAM,), config=MAMBA, fine_config={}),
    "cpu/kv-cache-size": cpu("roles.decode.kv_cache_memory=null"),
    "cpu/gpu-memory": cpu("roles.decode.gpu_memory_utilization=0.5"),
    "cpu/devices": cpu("roles.prefill.devices=[0]"),
    "cpu/mooncake": cpu("kv_transfer.connector=mooncake"),
    "cpu/block-size": cpu("roles.decode.block_size=16", not_found=("roles.decode.block_size=16",), fine_config=MLA),
    "cpu/latent-attention": cpu("quantization.kv_cache_dtype=fp8", config=MLA),
    "block-size/multiple": cuda("roles.prefill.block_size=24", not_found=("roles.prefill.block_size=32",)),
    "batch/tokens-below-requests": cuda(
        "roles.decode={max_num_seqs: 512, max_num_batched_tokens: 256}",
        not_found=("roles.decode={max_num_seqs: 512, max_num_batched_tokens: 512}",),
    ),
    "batch/whole-prompts": cuda(
        "model.max_model_len=2048",
        "roles.prefill={enable_chunked_prefill: false, max_num_batched_tokens: 1024}",
        not_found=(
            "model.max_model_len=2048",
            "roles.prefill={enable_chunked_prefill: false, max_num_batched_tokens: 2048}",
        ),
    ),
    "batch/whole-prompts-of-connector": cuda(
        "model.max_model_len=2048",
        "kv_transfer.connector=multi",
        "roles.decode.max_num_batched_tokens=512",
        not_found=("model.max_model_len=2048", "roles.decode.max_num_batched_tokens=512"),
    ),
    "connector/chunked-prefill": cuda(
        "kv_transfer.connector=shared-storage",
        "roles.decode.enable_chunked_prefill=true",
        not_found=("roles.decode.enable_chunked_prefill=true",),
    ),
    "model/longer-than-trained": cuda(
        "model.max_model_len=4097", not_found=("model.max_model_len=4096",), config={"max_position_embeddings": 4096}
    ),
    "parallel/heads": cuda("roles.decode.tensor_parallel=3", not_found=("roles.decode.tensor_parallel=4",)),
    "parallel/kv-heads": cuda(
        "roles.decode.tensor_parallel=4",
        not_found=("roles.decode.tensor_parallel=3",),
        config={"num_attention_heads": 12, "num_key_value_heads": 6},
    ),
    "parallel/experts": cuda(
        "roles.decode.expert_parallel=true", not_found=("roles.decode.expert_parallel=true",), fine_config=MOE
    ),
    "parallel/data-of-dense": cuda(
        "roles.decode.data_parallel=2", not_found=("roles.decode.data_parallel=2",), fine_config=MOE
    ),
    "parallel/stages-of-decode": cuda(
        "roles.decode.pipeline_parallel=2",
        not_found=("roles.decode.pipeline_parallel=2", "kv_transfer.connector=mooncake"),
    ),
    "parallel/stages-of-recurrent-prefill": cuda(
        "roles.prefill.pipeline_parallel=2",
        "kv_transfer.connector=nixl-push",
        not_found=("roles.prefill.pipeline_parallel=2", "kv_transfer.connector=nixl-push"),
        config=MAMBA,
        fine_config={},
    ),
    "parallel/stages-unproven": cuda(
        "roles.prefill.pipeline_parallel=2",
        "kv_transfer.connector=mooncake",
        not_found=("kv_transfer.connector=mooncake",),
    ),
    "parallel/stages-of-prefill": cuda(
        "roles.prefill.pipeline_parallel=2",
        not_found=("roles.prefill.pipeline_parallel=2", "kv_transfer.connector=nixl-push"),
    ),
    "parallel/data-with-push": cuda(
        "kv_transfer.connector=nixl-push", "roles.decode.data_parallel=2", not_found=("roles.decode.data_parallel=2",)
    ),
    "parallel/prefill-wider-than-decode": cuda(
        "roles.prefill.tensor_parallel=4", not_found=("roles.prefill.tensor_parallel=2",)
    ),
    "parallel/unequal": cuda("roles.prefill.tensor_parallel=2", not_found=("roles.prefill.tensor_parallel=2", TWO)),
    "devices/unequal-types": cuda(
        "roles.prefill.device_type=L40S", "roles.decode.device_type=A100", not_found=of_kind("A100")
    ),
    "connector/files-of-several-devices": cuda(
        *FOUR,
        "kv_transfer.connector=shared-storage",
        not_found=(*FOUR, "kv_transfer.connector=shared-storage"),
        fine_config=MLA,
    ),
    "connector/encoder-decoder": cuda(config={"is_encoder_decoder": True}, fine_config={}),
    "connector/recurrent-layers": cuda(
        "kv_transfer.connector=multi", not_found=("kv_transfer.connector=nixl-pull",), config=MAMBA
    ),
    "connector/hybrid-unproven": cuda(config=MAMBA, fine_config={}),
    "scaling/least": cuda(
        "roles.decode.scaling={min_replicas: 2, max_replicas: 4}",
        not_found=("roles.decode.scaling={max_replicas: 4}",),
    ),
    "scaling/most": cuda(
        "roles.decode={replicas: 3, scaling: {max_replicas: 2}}",
        not_found=("roles.decode={replicas: 2, scaling: {max_replicas: 2}}",),
    ),
}
