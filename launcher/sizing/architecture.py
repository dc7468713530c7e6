"""Shape: a decoder, as far as its memory goes."""

from dataclasses import dataclass


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
