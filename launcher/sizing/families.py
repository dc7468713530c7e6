"""Decision: the architecture that a model's configuration describes."""

from collections.abc import Iterator, Mapping
from typing import Any

from launcher.model_folder import text_part
from launcher.sizing.architecture import Architecture, Experts, Latent, Layer


class UnknownArchitectureError(ValueError):
    """It cannot be counted honestly; the message says why, as a clause."""


_QKV_BIAS = frozenset({"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl_text"})
_HEAD_NORMS = frozenset({"qwen3", "qwen3_moe", "qwen3_vl_text", "gemma3_text", "gemma3"})
_FOUR_NORMS = frozenset({"gemma2", "gemma3_text", "gemma3", "glm4"})
_KNOWN = frozenset(
    {
        *("llama", "mistral", "mixtral", "granite", "smollm3", "phi3", "gemma", "glm4_moe", "gpt_oss", "internlm3"),
        *("deepseek_v2", "deepseek_v3", "kimi_k2", "mistral3", "ministral", "seed_oss"),
        *_QKV_BIAS,
        *_HEAD_NORMS,
        *_FOUR_NORMS,
    }
)
_TIED_UNLESS_SAID = frozenset({"gemma3", "gemma3_text"})
_ALWAYS_TIED = frozenset({"gemma", "gemma2"})
"""By the engine, whatever is said."""
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma3_text": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
                    "max_position_embeddings": 131072, "sliding_window": 4096, "sliding_window_pattern": 6},
    "gemma2": {"head_dim": 256, "sliding_window": 4096},
    "gpt_oss": {"num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128},
}  # fmt: skip
"""What Transformers' class of a family says where the configuration leaves it out."""
_STATES = {
    "mamba_d_state": "Mamba layers", "ssm_state_size": "Mamba layers", "state_size": "Mamba layers",
    "mamba_d_ssm": "Mamba layers", "hybrid_override_pattern": "Mamba layers", "layers_block_type": "Mamba layers",
    "attn_layer_period": "Mamba layers", "linear_num_key_heads": "linear attention",
    "linear_attn_config": "linear attention", "attn_type_list": "linear attention",
    "index_head_dim": "a sparse attention with an index of its own", "compress_ratios": "a compressed KV cache",
    "num_kv_shared_layers": "layers that share KV", "global_head_dim": "heads that differ between layers",
    "attention_chunk_size": "attention in chunks", "block_configs": "layers that differ in their heads",
    "num_global_key_value_heads": "heads that differ between layers",
}  # fmt: skip
"""Keys of models whose cache is counted in another way -> what they have."""


def architecture_of(config: Mapping[str, Any]) -> Architecture:
    """From a ``config.json``; raises :class:`UnknownArchitectureError` naming what is missing or not understood."""
    text = text_part(config)
    family = str(text.get("model_type") or "")
    text = {**_DEFAULTS.get("gemma3_text" if family == "gemma3" else family, {}), **text}
    names = config.get("architectures")
    name = str(names[0]) if isinstance(names, list) and names else family or "a model without a name"
    _refuse_states(text, name)
    hidden, heads, layers = (_number(text, key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    if layers > _MOST_LAYERS:
        raise UnknownArchitectureError(f"its config.json says {layers} layers")
    experts = _experts(text, family)
    is_biased = bool(text.get("attention_bias"))
    return Architecture(
        name=name,
        hidden=hidden,
        intermediate=_optional(text, "intermediate_size") or (experts.width if experts else 0),
        heads=heads,
        kv_heads=_optional(text, "num_key_value_heads") or heads,
        head_dim=_optional(text, "head_dim") or max(1, hidden // heads),
        vocabulary=_optional(text, "vocab_size"),
        tied=family in _ALWAYS_TIED or bool(text.get("tie_word_embeddings", family in _TIED_UNLESS_SAID)),
        layers=tuple(
            Layer(window, experts is not None and has)
            for window, has in zip(_windows(text, family, layers), _with_experts(text, layers), strict=True)
        ),
        longest=_longest(text),
        dtype=_dtype(config, text),
        latent=_latent(text),
        experts=experts,
        mtp_layers=min(_optional(text, "num_nextn_predict_layers"), _MOST_LAYERS),
        qkv_bias=family in _QKV_BIAS or is_biased,
        output_bias=is_biased and family not in {"glm4", "glm4_moe", "seed_oss"},
        mlp_bias=bool(text.get("mlp_bias")) or family == "gpt_oss",
        head_norms=family in _HEAD_NORMS or bool(text.get("use_qk_norm")),
        layer_norms=4 if family in _FOUR_NORMS else 2,
        sinks=family == "gpt_oss",
        fused_experts=family == "gpt_oss",
        draft_vocabulary=_optional(text, "draft_vocab_size") or None,
        is_assumed=family not in _KNOWN,
    )


def _refuse_states(text: Mapping[str, Any], name: object) -> None:
    found = next((what for key, what in _STATES.items() if text.get(key)), None)
    types = text.get("layer_types")
    others = sorted({str(each) for each in types} - _ATTENTION) if isinstance(types, list) else []
    if found is None and others:
        found = f"layers of the kind {others[0]}"
    if found is None and text.get("is_encoder_decoder"):
        found = "an encoder beside its decoder"
    if found is not None:
        raise UnknownArchitectureError(f"{name} has {found}, whose memory is not counted here")


_MOST, _MOST_LAYERS = 10**9, 10_000
"""Numbers beyond are no sizes of a model."""
_ATTENTION = frozenset({"full_attention", "sliding_attention", "attention"})


def _number(text: Mapping[str, Any], key: str) -> int:
    value = _optional(text, key)
    if not value:
        raise UnknownArchitectureError(f"its config.json does not say {key}")
    return value


def _optional(text: Mapping[str, Any], key: str) -> int:
    """A number that there may be; 0 for none, and for what a foreign file has in its place."""
    value = text.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= _MOST else 0


def _latent(text: Mapping[str, Any]) -> Latent | None:
    if not text.get("kv_lora_rank"):
        return None
    return Latent(
        _optional(text, "q_lora_rank") or None,
        *(_number(text, key) for key in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")),
    )


def _experts(text: Mapping[str, Any], family: str) -> Experts | None:
    keys = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
    routed = max(_optional(text, key) for key in keys)
    if routed < 2:
        return None
    width = _optional(text, "moe_intermediate_size") or _number(text, "intermediate_size")
    shared = _optional(text, "shared_expert_intermediate_size")
    return Experts(
        routed,
        _optional(text, "num_experts_per_tok") or 1,
        width,
        shared or _optional(text, "n_shared_experts") * width,
        shared_gate=shared > 0,
        correction=text.get("topk_method") == "noaux_tc" or family in {"glm4_moe", "kimi_k2"},
        wide_router=family == "glm4_moe",
    )


def _with_experts(text: Mapping[str, Any], layers: int) -> Iterator[bool]:
    first, step = _optional(text, "first_k_dense_replace"), _optional(text, "decoder_sparse_step")
    dense = text.get("mlp_only_layers")
    for number in range(layers):
        place = number + 1 if step else number
        is_dense = place % (step or _optional(text, "moe_layer_freq") or 1) != 0
        yield not (is_dense or number < first or (isinstance(dense, list) and number in dense))


def _windows(text: Mapping[str, Any], family: str, layers: int) -> list[int | None]:
    """How far each layer looks back, as vLLM decides it: by layer types, else by one window for all."""
    window, pattern = _optional(text, "sliding_window"), _optional(text, "sliding_window_pattern")
    if not window or text.get("use_sliding_window") is False:
        return [None] * layers
    types = text.get("layer_types")
    if isinstance(types, list) and len(types) >= layers:
        slides = [kind == "sliding_attention" for kind in types[:layers]]
    elif family in {"gemma2", "gpt_oss"}:
        slides = [number % 2 == 0 for number in range(layers)]
    elif pattern:
        slides = [(number + 1) % pattern != 0 for number in range(layers)]
    elif family.startswith("qwen"):
        first = text.get("max_window_layers")
        from_there = first if isinstance(first, int) and text.get("use_sliding_window") else layers
        slides = [number >= from_there for number in range(layers)]
    else:
        slides = [True] * layers
    return [window if each else None for each in slides]


def _longest(text: Mapping[str, Any]) -> int | None:
    longest = _optional(text, "max_position_embeddings")
    if not longest:
        return None
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if isinstance(scaling, Mapping) and (scaling.get("rope_type") or scaling.get("type")) in {"linear", "dynamic"}:
        factor = scaling.get("factor")  # of the others, the length is that after scaling
        return int(longest * factor) if isinstance(factor, int | float) and 1 <= factor <= _MOST_LAYERS else longest
    return longest


def _dtype(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """What ``auto`` means: a checkpoint in 32 bits is served in 16."""
    told = next((part[key] for part in (text, config) for key in ("dtype", "torch_dtype") if part.get(key)), "bfloat16")
    dtype = str(told).removeprefix("torch.")
    return "float16" if dtype == "float32" else dtype
