"""Decision: what combinations are judged by, of each role of a profile; ``None`` is what nobody knows."""

from collections.abc import Iterator, Mapping
from typing import Any

from launcher.engine_args import DECODE_ONLY
from launcher.gpus import capability
from launcher.model_folder import quantization_of, text_part
from launcher.plan import EngineInstance
from launcher.preflight.checkpoint import config_of
from launcher.preflight.finding import Case
from launcher.preflight.quantization import scheme
from launcher.profile import Device, Profile, RoleSettings
from proxy.topology import Role

Trait = str | int | float | bool | None
Traits = Mapping[str, Trait]


def traits_of_roles(case: Case) -> tuple[Traits, ...]:
    """Those of each role, from its settings, its first instance and the model's configuration."""
    return tuple(_traits(case))


def _traits(case: Case) -> Iterator[Traits]:
    config = case.once(config_of)
    for role, settings in case.profile.roles.items():
        engine = next(each for each in case.plan.engines if each.role is role)
        yield {
            "role": role.value,
            "device": case.profile.device.value,
            "pd": role is not Role.AGGREGATED,
            "connector": None if role is Role.AGGREGATED else case.profile.kv_transfer.connector.value,
            **_of_role(settings),
            **_of_precision(case.profile, role, settings, config),
            **_of_speculation(case.profile, role, settings),
            **_of_device(case.profile, settings, engine),
            **(architecture := _of_architecture(config)),
            **_of_split(case, role, settings, engine, architecture),
            "max_model_len": case.profile.model.max_model_len,
            "lora": case.profile.model.lora is not None,
            "model": case.plan.model,
        }


def _of_role(settings: RoleSettings) -> Traits:
    return {
        "replicas": settings.replicas,
        "least_replicas": settings.scaling.min_replicas if settings.scaling else None,
        "most_replicas": settings.scaling.max_replicas if settings.scaling else None,
        "tp": settings.tensor_parallel,
        "pp": settings.pipeline_parallel,
        "dp": settings.data_parallel,
        "ep": settings.expert_parallel,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "no_kv_size": settings.kv_cache_memory is None,
        "block_size": settings.block_size,
        "odd_block": None if settings.block_size is None else settings.block_size % 16 != 0,
        "odd_cpu_block": None if settings.block_size is None else settings.block_size % 32 != 0,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "chunked_prefill": settings.enable_chunked_prefill,
    }


def _of_precision(profile: Profile, role: Role, settings: RoleSettings, config: Mapping[str, Any]) -> Traits:
    quantization = profile.quantization_of(role)
    declared = quantization_of(config)
    decode = profile.quantization_of(Role.DECODE) if role is Role.PREFILL else quantization
    kv_dtype = quantization.kv_cache_dtype
    dtype = profile.model.dtype
    return {
        "quantization_key": "quantization" if settings.quantization is None else f"roles.{role}.quantization",
        "weights": quantization.weights,
        "scheme": quantization.checkpoint_scheme or (scheme(declared) if declared else None),
        "quant_method": str(declared.get("quant_method", "")).lower().replace("_", "-") or None,
        "has_kv_scales": bool(declared.get("kv_cache_scheme")) if declared else None,
        "block_fp8": bool(declared.get("weight_block_size")) if declared else None,
        "kv_dtype": kv_dtype,
        "weights_differ": quantization.weights != decode.weights,
        "decode_weights": decode.weights,
        "dtype": dtype if dtype != "auto" else _declared_dtype(config),
        "int8_activations": _int8_activations(declared),
        "loads_kv_scales": _loads_kv_scales(declared) if declared else None,
    }


def _declared_dtype(config: Mapping[str, Any]) -> str:
    """What the engine computes in when it may choose: models in 32 bits it computes in 16."""
    told = str(config.get("dtype") or config.get("torch_dtype") or "auto").removeprefix("torch.")
    return "auto" if told == "float32" else told


def _int8_activations(declared: Mapping[str, Any]) -> bool | None:
    """Whether activations are 8-bit integers, as in W8A8; ``None`` where the checkpoint does not tell."""
    method = str(declared.get("quant_method", "")).lower().replace("_", "-")
    if method == "compressed-tensors":
        groups = declared.get("config_groups")
        told = [group.get("input_activations") for group in _mappings(groups)]
        return any(isinstance(each, Mapping) and each.get("type", "int") == "int" for each in told)
    return False if method in {"gptq", "awq", "auto-round", "inc"} else None


def _loads_kv_scales(declared: Mapping[str, Any]) -> bool:
    method = str(declared.get("quant_method", "")).lower().replace("_", "-")
    return method == "fp8" or (method == "compressed-tensors" and bool(declared.get("kv_cache_scheme")))


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in (value.values() if isinstance(value, Mapping) else ()) if isinstance(each, Mapping))


def _of_speculation(profile: Profile, role: Role, settings: RoleSettings) -> Traits:
    speculation = profile.speculation_of(role)
    draft = None if speculation is None else speculation.draft_settings
    return {
        "speculation_key": "speculation" if settings.speculation is None else f"roles.{role}.speculation",
        "own_speculation": settings.speculation is not None,
        "method": None if speculation is None else speculation.method.value,
        "draft_has_kv": None if speculation is None else speculation.method not in DECODE_ONLY,
        "has_draft": draft is not None,
        "k": None if speculation is None else speculation.num_speculative_tokens,
        "scheduled": speculation is not None and speculation.schedule is not None,
        "draft_tp": None if draft is None else draft.tensor_parallel,
        "odd_draft_tp": draft is not None and draft.tensor_parallel not in {None, 1, settings.tensor_parallel},
    }


def _of_device(profile: Profile, settings: RoleSettings, engine: EngineInstance) -> Traits:
    is_gpu = profile.device is Device.CUDA
    return {
        "device_type": engine.device_type,
        "capability": (known := capability(engine.device_type) if is_gpu else None),
        "capability_major": None if known is None else int(known),
        "names_devices": settings.devices is not None or settings.device_type is not None,
    }


def _of_split(case: Case, role: Role, settings: RoleSettings, engine: EngineInstance, architecture: Traits) -> Traits:
    """How this role's instances are split, compared with the model and with decode's."""
    heads, kv_heads, tp = architecture["heads"], architecture["kv_heads"], settings.tensor_parallel
    decode = case.profile.roles.decode if role is Role.PREFILL else None
    others = [each for each in case.plan.engines if each.role is Role.DECODE] if decode else []
    decode_type = others[0].device_type if others else None
    both_known = engine.device_type is not None and decode_type is not None
    return {
        "uneven_heads": None if not isinstance(heads, int) else heads % tp != 0,
        "uneven_kv_heads": None if not isinstance(kv_heads, int) else kv_heads % tp != 0 and tp % kv_heads != 0,
        "copied_kv_heads": None if not isinstance(kv_heads, int) else tp > kv_heads,
        "decode_tp": None if decode is None else decode.tensor_parallel,
        "unequal_split": None
        if decode is None
        else (tp, settings.block_size) != (decode.tensor_parallel, decode.block_size),
        "decode_device_type": decode_type,
        "unequal_devices": engine.device_type != decode_type if both_known else None,
    }


def _of_architecture(config: Mapping[str, Any]) -> Traits:
    text = text_part(config)
    heads = _number(text, "num_attention_heads")
    kv_heads = _number(text, "num_key_value_heads") or heads
    experts = next((n for key in _EXPERTS if (n := _number(text, key))), None)
    is_mla = _number(text, "kv_lora_rank") is not None if config else None
    return {
        "heads": heads,
        "kv_heads": kv_heads,
        "moe": None if not config else experts is not None,
        "mla": is_mla,
        "recurrent": None if not config else _is_recurrent(text),
        "encoder_decoder": None if not config else config.get("is_encoder_decoder") is True,
        "longest": _longest(text),
        "nextn": _next_token_layers(text) if config else None,
    }


_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_NEXT = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers", "mtp_num_layers")
_WITHOUT_NEXT = frozenset(
    {
        *("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3"),
        *("gemma3_text", "phi", "phi3", "phimoe", "gpt_oss", "granite", "granitemoe", "olmo2", "smollm3", "falcon"),
    }
)
"""Kinds of model that have no such layers. Of others that do not count them the engine may know of some."""
_RECURRENT = frozenset({"mamba", "linear", "recurrent", "rglru", "conv"})
_SCALED_ALREADY = frozenset({"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"})
"""Kinds of scaled positions whose factor is in the greatest position already."""


def _next_token_layers(config: Mapping[str, Any]) -> int | None:
    told = [n for key in _NEXT if (n := _number(config, key)) is not None]
    return max(told) if told else 0 if str(config.get("model_type")) in _WITHOUT_NEXT else None


def _is_recurrent(config: Mapping[str, Any]) -> bool:
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return any(_RECURRENT & {*str(kind).split("_")} for kind in kinds)
    return any(key.startswith(("mamba_", "ssm_", "linear_attn_")) for key in config)


def _longest(config: Mapping[str, Any]) -> int | None:
    positions = _number(config, "max_position_embeddings")
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if positions is None or not isinstance(scaling, Mapping):
        return positions
    factor, kind = scaling.get("factor"), scaling.get("rope_type", scaling.get("type"))
    if isinstance(factor, int | float) and kind not in _SCALED_ALREADY and 1 < factor < _GREATEST_FACTOR:
        positions = int(positions * factor)
    return max(positions, _number(config, "model_max_length") or 0)


_GREATEST_FACTOR = 1e6


def _number(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
