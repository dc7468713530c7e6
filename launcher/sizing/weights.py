"""Decision: the bytes of a model's weights on one device: from its tensors, or counted from its configuration."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

from launcher.model_folder import Tensor
from launcher.sizing.architecture import Architecture, Experts, Latent
from launcher.sizing.kv_cache import stage_sizes
from launcher.sizing.scheme import Scheme

_PADDING = 64
"""vLLM rounds the vocabulary up to a multiple of this."""


class Split(Enum):
    """How tensor parallelism divides a matrix."""

    EVENLY = auto()
    NOT = auto()
    """Every device has all of it."""
    BY_KV_HEADS = auto()
    """Evenly, but one head is the least."""
    VOCABULARY = auto()
    EXPERTS = auto()
    """Evenly; with expert parallelism whole experts."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear layer, an embedding or a vector."""

    name: str
    """Of the module, as in the checkpoint."""
    rows: int
    """Outputs."""
    columns: int
    """Inputs; 1 for a vector."""
    split: Split
    layer: int | None = None
    """``None``: before or behind all layers."""
    copies: int = 1
    """Alike: one for each expert."""
    is_linear: bool = True
    """What quantization may apply to."""
    in_32_bits: bool = False
    """Whatever the engine computes in."""

    @property
    def parameters(self) -> int:
        """Numbers in all copies."""
        return self.rows * self.columns * self.copies


@dataclass(frozen=True, slots=True)
class Sharding:
    """How an engine spreads a model over devices."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: bool = False
    """Whole experts on the devices of all tensor- and data-parallel ranks."""


def matrices(model: Architecture, *, with_mtp: bool = False) -> Iterator[Matrix]:
    """All that a checkpoint of this architecture has; draft layers only ``with_mtp``."""
    yield Matrix("model.embed_tokens", model.vocabulary, model.hidden, Split.VOCABULARY, is_linear=False)
    for number, layer in enumerate(model.layers):
        yield from _layer(model, number, model.experts if layer.has_experts else None)
    yield Matrix("model.norm", model.hidden, 1, Split.NOT, is_linear=False)
    if not model.tied:
        yield Matrix("lm_head", model.vocabulary, model.hidden, Split.VOCABULARY, is_linear=False)
    if with_mtp:
        yield from mtp_matrices(model)


def mtp_matrices(model: Architecture) -> Iterator[Matrix]:
    """Layers behind the last that only draft: each a decoder layer, and what joins it to the tokens."""
    for number in range(len(model.layers), len(model.layers) + model.mtp_layers):
        yield from _layer(model, number, model.experts)
        yield Matrix(f"model.layers.{number}.eh_proj", model.hidden, 2 * model.hidden, Split.NOT, number)
        for norm in ("enorm", "hnorm", "shared_head.norm"):
            yield _vector(f"model.layers.{number}.{norm}", model.hidden, number)


def parameters(found: Iterable[Matrix]) -> int:
    """Numbers in all of them."""
    return sum(matrix.parameters for matrix in found)


def counted(
    found: Iterable[Matrix], scheme: Scheme | None, float_size: int, model: Architecture, sharding: Sharding
) -> int:
    """Bytes on the device that has most; those that ``scheme`` does not quantize have ``float_size`` bytes each."""

    def size(matrix: Matrix) -> int:
        is_quantized = scheme is not None and matrix.is_linear and scheme.applies(matrix.name)
        one = scheme.size(matrix.rows, matrix.columns) if is_quantized and scheme else matrix.rows * matrix.columns
        each = 1 if is_quantized else 4 if matrix.in_32_bits else float_size
        return one * matrix.copies * each

    return _largest(((each.layer, each.split, size(each)) for each in found), model, sharding)


def measured(tensors: Iterable[Tensor], float_size: int, model: Architecture, sharding: Sharding) -> int:
    """Bytes of a checkpoint's tensors on the device that has most, as an engine loads them: without what it leaves out.

    Floating-point weights are loaded as numbers of ``float_size`` bytes, whatever they are in the file.
    """
    return _largest(_loaded(tensors, float_size, model), model, sharding)


def _loaded(tensors: Iterable[Tensor], float_size: int, model: Architecture) -> Iterator[tuple[int | None, Split, int]]:
    for tensor in tensors:
        name = tensor.name
        layer = int(found[1]) if (found := _LAYER.search(name)) else None
        is_draft = layer is not None and layer >= len(model.layers) and not _TOWER.search(name)
        if is_draft or name.endswith(_LEFT_OUT) or (model.tied and _HEAD.search(name)):
            continue
        is_scale = "scale" in name or name.endswith("correction_bias")
        size = tensor.elements * float_size if tensor.dtype in _FLOATS and not is_scale else tensor.size
        yield (None if _TOWER.search(name) else layer), _split_of(tensor), size


_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
_LEFT_OUT = ("rotary_emb.inv_freq", ".g_idx", "attn.masked_bias", ".weight_shape")
_LAYER = re.compile(r"(?:layers|h|blocks)\.(\d+)\.")
_TOWER = re.compile(r"vision|visual|audio|image|multi_modal_projector|mm_projector")
_HEAD = re.compile(r"(?:^|\.)lm_head\.|^output\.weight")
_NAMES = (
    (re.compile(r"embed_tokens|lm_head|wte|tok_embeddings|^output\.weight"), Split.VOCABULARY),
    (re.compile(r"\.experts\."), Split.EXPERTS),
    (re.compile(r"[kv]_proj\.|\.w[kv]\."), Split.BY_KV_HEADS),
    (re.compile(r"q_a_proj|kv_a_proj|norm|\.gate\.|shared_expert_gate|router|eh_proj"), Split.NOT),
)
_NAMES_OF_LATENT = re.compile(r"q_b_proj|kv_b_proj")


def _split_of(tensor: Tensor) -> Split:
    if _NAMES_OF_LATENT.search(tensor.name):
        return Split.EVENLY
    found = next((split for pattern, split in _NAMES if pattern.search(tensor.name)), None)
    if found is not None:
        return found
    after = re.search(r"(?:o_proj|down_proj)\.bias", tensor.name)
    return Split.NOT if after or tensor.elements <= 1 else Split.EVENLY


def _largest(found: Iterable[tuple[int | None, Split, int]], model: Architecture, sharding: Sharding) -> int:
    """Bytes on the first device of the pipeline stage that has most."""
    sizes = stage_sizes(len(model.layers), sharding.pipeline)
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    stages = [0.0] * sharding.pipeline
    for layer, split, size in found:
        share = size * _share(split, model, sharding)
        if layer is None:  # embedding first, output last; where they are one, both have it
            stages[0] += share
            if sharding.pipeline > 1:
                stages[-1] += share
        else:
            stages[next((number for number, end in enumerate(ends) if layer < end), -1)] += share
    return round(max(stages))


def _share(split: Split, model: Architecture, sharding: Sharding) -> float:
    match split:
        case Split.NOT:
            return 1.0
        case Split.EVENLY:
            return 1 / sharding.tensor
        case Split.BY_KV_HEADS:
            return 1 / min(sharding.tensor, model.kv_heads)
        case Split.VOCABULARY:
            rows = max(1, model.vocabulary)
            return -(-rows // _PADDING) * _PADDING / rows / sharding.tensor
        case Split.EXPERTS:
            return 1 / (sharding.tensor * (sharding.data if sharding.experts else 1))


def _layer(model: Architecture, number: int, experts: Experts | None) -> Iterator[Matrix]:
    start = f"model.layers.{number}"
    if model.latent is not None:
        yield from _latent_attention(model, model.latent, number, f"{start}.self_attn")
    else:
        yield from _attention(model, number, f"{start}.self_attn")
    if experts is None:
        yield from _mlp(f"{start}.mlp", model.hidden, model.intermediate, number, 1, model.mlp_bias)
    else:
        router = Matrix(f"{start}.mlp.gate", experts.routed, model.hidden, Split.NOT, number, is_linear=False)
        yield replace(router, in_32_bits=experts.wide_router)
        if experts.correction or model.fused_experts:
            yield replace(_vector(f"{start}.mlp.gate.bias", experts.routed, number), in_32_bits=experts.correction)
        name = f"{start}.mlp.experts.0"
        yield from _mlp(name, model.hidden, experts.width, number, experts.routed, model.fused_experts)
        if experts.shared_width:
            yield from _mlp(f"{start}.mlp.shared_experts", model.hidden, experts.shared_width, number, 1, False)
        if experts.shared_gate:
            yield Matrix(f"{start}.mlp.shared_expert_gate", 1, model.hidden, Split.NOT, number, is_linear=False)
    for norm in range(model.layer_norms):
        yield _vector(f"{start}.norm.{norm}", model.hidden, number)


def _attention(model: Architecture, number: int, name: str) -> Iterator[Matrix]:
    of_queries, of_keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    for part, rows, split in (
        ("q", of_queries, Split.EVENLY), ("k", of_keys, Split.BY_KV_HEADS), ("v", of_keys, Split.BY_KV_HEADS)
    ):  # fmt: skip
        yield Matrix(f"{name}.{part}_proj", rows, model.hidden, split, number)
        if model.qkv_bias:
            yield _vector(f"{name}.{part}_proj.bias", rows, number, split)
    yield Matrix(f"{name}.o_proj", model.hidden, of_queries, Split.EVENLY, number)
    if model.output_bias:
        yield _vector(f"{name}.o_proj.bias", model.hidden, number)
    if model.head_norms:
        yield from (_vector(f"{name}.{part}_norm", model.head_dim, number) for part in ("q", "k"))
    if model.sinks:
        yield _vector(f"{name}.sinks", model.heads, number, Split.EVENLY)


def _latent_attention(model: Architecture, latent: Latent, number: int, name: str) -> Iterator[Matrix]:
    queries = model.heads * (latent.nope + latent.rope)
    if latent.query is None:
        yield Matrix(f"{name}.q_proj", queries, model.hidden, Split.EVENLY, number)
    else:
        yield Matrix(f"{name}.q_a_proj", latent.query, model.hidden, Split.NOT, number)
        yield _vector(f"{name}.q_a_layernorm", latent.query, number)
        yield Matrix(f"{name}.q_b_proj", queries, latent.query, Split.EVENLY, number)
    yield Matrix(f"{name}.kv_a_proj_with_mqa", latent.kv + latent.rope, model.hidden, Split.NOT, number)
    yield _vector(f"{name}.kv_a_layernorm", latent.kv, number)
    yield Matrix(f"{name}.kv_b_proj", model.heads * (latent.nope + latent.value), latent.kv, Split.EVENLY, number)
    yield Matrix(f"{name}.o_proj", model.hidden, model.heads * latent.value, Split.EVENLY, number)


def _mlp(name: str, hidden: int, width: int, number: int, copies: int, bias: bool) -> Iterator[Matrix]:
    split = Split.EXPERTS if ".experts." in name else Split.EVENLY
    for part in ("gate", "up"):
        yield Matrix(f"{name}.{part}_proj", width, hidden, split, number, copies)
    yield Matrix(f"{name}.down_proj", hidden, width, split, number, copies)
    if bias:
        for part, size in (("gate", width), ("up", width), ("down", hidden)):
            yield Matrix(f"{name}.{part}_proj.bias", size, 1, split, number, copies, is_linear=False)


def _vector(name: str, size: int, number: int, split: Split = Split.NOT) -> Matrix:
    return Matrix(name, size, 1, split, number, is_linear=False)
