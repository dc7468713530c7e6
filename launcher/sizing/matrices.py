"""Decision: all matrices and vectors of an architecture, as a checkpoint has them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

from launcher.sizing.architecture import Architecture, Experts, Latent


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
