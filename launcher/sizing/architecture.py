"""Decision: what a model's configuration says that decides its memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.model_folder import text_part


class UnknownArchitectureError(ValueError):
    """It cannot be counted honestly; the message says why, as a clause."""


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: one vector for all heads is kept of a token."""

    query: int | None
    """Dimensions into which queries are compressed; ``None``: they are not."""
    kv: int
    rope: int
    nope: int
    value: int


@dataclass(frozen=True, slots=True)
class Experts:
    """A layer that sends each token to few of many."""

    routed: int
    active: int
    width: int
    """Of one expert's inner layer."""
    shared_width: int
    """Of all experts together that every token passes."""
    shared_gate: bool = False
    correction: bool = False
    """Whether the router has a bias of its own."""
    wide_router: bool = False
    """The engine keeps it in 32 bits."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What differs between layers."""

    window: int | None
    """Tokens that its attention looks back; ``None``: all."""
    has_experts: bool


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder, as far as its memory goes."""

    name: str
    """As the checkpoint calls it."""
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    """0: not said; then its weights cannot be counted, but its KV cache can."""
    tied: bool
    """The output layer is the embedding."""
    layers: tuple[Layer, ...]
    longest: int | None
    """Tokens of prompt and answer that it is made for."""
    dtype: str
    """What ``--dtype auto`` computes in."""
    latent: Latent | None = None
    experts: Experts | None = None
    mtp_layers: int = 0
    """Layers behind the last that only draft."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_norms: bool = False
    """Queries and keys are normed per head."""
    layer_norms: int = 2
    sinks: bool = False
    fused_experts: bool = False
    draft_vocabulary: int | None = None
    """Tokens that an EAGLE-3 head may draft."""
    is_assumed: bool = False
    """The family is not known: counted like Llama."""

    @property
    def is_countable(self) -> bool:
        """Whether enough is said to count its weights."""
        return self.vocabulary > 0 and self.intermediate > 0

    @property
    def kv_dimensions(self) -> int:
        """Numbers that one layer keeps of one token, over all heads."""
        return self.latent.kv + self.latent.rope if self.latent else 2 * self.kv_heads * self.head_dim


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
    name = next(iter(config.get("architectures") or ()), None) or family or "a model without a name"
    _refuse_states(text, name)
    hidden, heads, layers = (_number(text, key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    latent, experts = _latent(text), _experts(text, family)
    return Architecture(
        name=str(name),
        hidden=hidden,
        intermediate=int(text.get("intermediate_size") or (experts.width if experts else 0)),
        heads=heads,
        kv_heads=int(text.get("num_key_value_heads") or heads),
        head_dim=int(text.get("head_dim") or hidden // heads),
        vocabulary=int(text.get("vocab_size") or 0),
        tied=family in _ALWAYS_TIED or bool(text.get("tie_word_embeddings", family in _TIED_UNLESS_SAID)),
        layers=tuple(
            Layer(window, experts is not None and has)
            for window, has in zip(_windows(text, family, layers), _with_experts(text, layers), strict=True)
        ),
        longest=_longest(text),
        dtype=_dtype(config, text),
        latent=latent,
        experts=experts,
        mtp_layers=int(text.get("num_nextn_predict_layers") or 0),
        qkv_bias=family in _QKV_BIAS or bool(text.get("attention_bias")),
        output_bias=bool(text.get("attention_bias")) and family not in {"glm4", "glm4_moe", "seed_oss"},
        mlp_bias=bool(text.get("mlp_bias")) or family == "gpt_oss",
        head_norms=family in _HEAD_NORMS or bool(text.get("use_qk_norm")),
        layer_norms=4 if family in _FOUR_NORMS else 2,
        sinks=family == "gpt_oss",
        fused_experts=family == "gpt_oss",
        draft_vocabulary=int(text.get("draft_vocab_size") or 0) or None,
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


_ATTENTION = frozenset({"full_attention", "sliding_attention", "attention"})


def _number(text: Mapping[str, Any], key: str) -> int:
    value = text.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UnknownArchitectureError(f"its config.json does not say {key}")
    return value


def _latent(text: Mapping[str, Any]) -> Latent | None:
    if not text.get("kv_lora_rank"):
        return None
    query = text.get("q_lora_rank")
    return Latent(
        query if isinstance(query, int) else None,
        *(_number(text, key) for key in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")),
    )


def _experts(text: Mapping[str, Any], family: str) -> Experts | None:
    keys = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
    routed = next((text[key] for key in keys if isinstance(text.get(key), int)), 0)
    if routed < 2:
        return None
    width = int(text.get("moe_intermediate_size") or _number(text, "intermediate_size"))
    shared = int(text.get("shared_expert_intermediate_size") or (text.get("n_shared_experts") or 0) * width)
    return Experts(
        routed,
        int(text.get("num_experts_per_tok") or 1),
        width,
        shared,
        shared_gate=bool(text.get("shared_expert_intermediate_size")),
        correction=text.get("topk_method") == "noaux_tc" or family in {"glm4_moe", "kimi_k2"},
        wide_router=family == "glm4_moe",
    )


def _with_experts(text: Mapping[str, Any], layers: int) -> Iterator[bool]:
    first = int(text.get("first_k_dense_replace") or 0)
    step = int(text.get("decoder_sparse_step") or text.get("moe_layer_freq") or 1)
    dense = text.get("mlp_only_layers")
    from_first = 1 if text.get("decoder_sparse_step") else 0
    for number in range(layers):
        is_dense = number < first or (number + from_first) % step or (isinstance(dense, list) and number in dense)
        yield not is_dense


def _windows(text: Mapping[str, Any], family: str, layers: int) -> list[int | None]:
    """How far each layer looks back, as vLLM decides it: by layer types, else by one window for all."""
    window = text.get("sliding_window")
    if not isinstance(window, int) or window < 1 or text.get("use_sliding_window") is False:
        return [None] * layers
    types, pattern, first = (text.get(key) for key in ("layer_types", "sliding_window_pattern", "max_window_layers"))
    if isinstance(types, list) and len(types) >= layers:
        slides = [kind == "sliding_attention" for kind in types[:layers]]
    elif family in {"gemma2", "gpt_oss"}:
        slides = [number % 2 == 0 for number in range(layers)]
    elif isinstance(pattern, int) and pattern > 0:
        slides = [(number + 1) % pattern != 0 for number in range(layers)]
    elif family.startswith("qwen"):
        last = first if isinstance(first, int) and text.get("use_sliding_window") else layers
        slides = [number >= last for number in range(layers)]
    else:
        slides = [True] * layers
    return [window if each else None for each in slides]


def _longest(text: Mapping[str, Any]) -> int | None:
    longest = text.get("max_position_embeddings")
    if not isinstance(longest, int):
        return None
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if isinstance(scaling, Mapping) and (scaling.get("rope_type") or scaling.get("type")) in {"linear", "dynamic"}:
        factor = scaling.get("factor")  # of the others, the length is that after scaling
        return int(longest * factor) if isinstance(factor, int | float) else longest
    return longest


def _dtype(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """What ``auto`` means: a checkpoint in 32 bits is served in 16."""
    told = next((part[key] for part in (text, config) for key in ("dtype", "torch_dtype") if part.get(key)), "bfloat16")
    dtype = str(told).removeprefix("torch.")
    return "float16" if dtype == "float32" else dtype
