"""Speculative decoding."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from launcher.profile.shape import Name, Positive, Shape

Share = Annotated[float, Field(ge=0, le=1)]


class SpeculationMethod(StrEnum):
    """Where draft tokens come from: all of vLLM 0.32's that make answers faster."""

    OFF = "off"
    NGRAM = "ngram"
    NGRAM_GPU = "ngram_gpu"
    SUFFIX = "suffix"
    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MEDUSA = "medusa"
    MLP_SPECULATOR = "mlp_speculator"
    MTP = "mtp"
    DFLASH = "dflash"
    DSPARK = "dspark"


class Draft(Shape):
    """A model, or heads, of its own that drafts tokens."""

    model: Name
    """Hub id or folder."""
    revision: Name | None = None
    """Of the hub id: branch, tag or commit."""
    quantization: Name | None = None
    """vLLM's name of its scheme; default: as its own checkpoint says, whatever the target's is."""
    tensor_parallel: Positive | None = None
    """Devices that share the draft: 1, or as many as share the target."""
    kv_cache_dtype: Name | None = None
    """Of the draft's own KV cache; default: the target's."""
    max_model_len: Positive | None = None
    """Longest sequence that it drafts for, in tokens."""


class Suffix(Shape):
    """Of the method `suffix`: text is drafted that stood behind the same words before."""

    max_tree_depth: Positive = 24
    """Tokens of a match and its continuation together."""
    max_cached_requests: Annotated[int, Field(ge=0)] = 10000
    """Answers that are remembered; 0: only the request's own text."""
    max_spec_factor: Annotated[float, Field(ge=0)] = 1.0
    """Tokens drafted for each token matched."""
    min_token_prob: Share = 0.1
    """Tokens that followed more rarely are not drafted."""


_WITH_DRAFT = frozenset(
    {
        SpeculationMethod.DRAFT_MODEL,
        SpeculationMethod.EAGLE,
        SpeculationMethod.EAGLE3,
        SpeculationMethod.MEDUSA,
        SpeculationMethod.MLP_SPECULATOR,
        SpeculationMethod.DFLASH,
        SpeculationMethod.DSPARK,
    }
)
_DRAFT_OR_OWN = frozenset({SpeculationMethod.MTP, SpeculationMethod.DSPARK})
"""Methods whose heads may be a part of the target's own checkpoint."""
_COUNTS_FOR_ITSELF = frozenset({SpeculationMethod.OFF, SpeculationMethod.SUFFIX})
_NGRAM = frozenset({SpeculationMethod.NGRAM, SpeculationMethod.NGRAM_GPU})

BatchRange = tuple[Positive, Positive, Annotated[int, Field(ge=0)]]
"""First and last number of running requests, and K for them."""


class Speculation(Shape):
    """Speculative decoding."""

    method: SpeculationMethod
    """Where draft tokens come from."""
    num_speculative_tokens: Positive | None = None
    """Draft tokens per step (K)."""
    schedule: Annotated[list[BatchRange], Field(min_length=1)] | None = None
    """K by the number of running requests: `[[1, 4, 5], [5, 16, 2], [17, 512, 0]]`; 0 turns speculation off."""
    draft: Name | Draft | None = None
    """Hub id or folder of the draft, or its settings; only for methods with a draft of their own."""
    prompt_lookup_max: Positive | None = None
    """Longest n-gram that is looked up; only for `ngram` and `ngram_gpu`."""
    prompt_lookup_min: Positive | None = None
    """Shortest n-gram that is looked up; only for `ngram` and `ngram_gpu`."""
    suffix: Suffix | None = None
    """Only for `suffix`."""
    parallel_drafting: bool = False
    """Draft all K tokens in one step; for drafts that were trained for it."""
    draft_sample_method: Literal["greedy", "probabilistic"] | None = None
    """How the draft chooses its tokens; default: the engine's."""
    report_acceptance: bool = False
    """Engines tell in each answer how many of its draft tokens were accepted (`metrics.speculative_decoding`), which
    clients see, too: for rules of pools by `expected_acceptance`, and for acceptance by temperature. Streams tell it
    when the client asks for usage."""
    heterogeneous_vocab: bool = False
    """Let a `draft_model` have another vocabulary than its target; greedy drafting only."""

    @model_validator(mode="after")
    def _fits_method(self) -> Self:
        method = self.method
        if method is SpeculationMethod.OFF and len(self.model_fields_set) > 1:
            others = " and ".join(sorted(self.model_fields_set - {"method"}))
            raise ValueError(f"method off takes nothing else: remove {others}")
        if self.num_speculative_tokens is None and method not in _COUNTS_FOR_ITSELF:
            raise ValueError(f"method {method} needs num_speculative_tokens: usually 3 to 8")
        if method in _WITH_DRAFT - _DRAFT_OR_OWN and self.draft is None:
            raise ValueError(f"method {method} needs a draft model: set draft")
        if method not in _WITH_DRAFT | _DRAFT_OR_OWN and self.draft is not None:
            raise ValueError(f"method {method} uses no draft model: remove draft")
        if method not in _NGRAM and (self.prompt_lookup_max or self.prompt_lookup_min):
            raise ValueError("prompt_lookup_max and prompt_lookup_min belong to method ngram")
        if method is not SpeculationMethod.SUFFIX and self.suffix is not None:
            raise ValueError("suffix belongs to method suffix: remove it")
        if method is not SpeculationMethod.DRAFT_MODEL and self.heterogeneous_vocab:
            raise ValueError("heterogeneous_vocab belongs to method draft_model: remove it")
        if (self.prompt_lookup_min or 1) > (self.prompt_lookup_max or self.prompt_lookup_min or 1):
            raise ValueError(
                f"prompt_lookup_min {self.prompt_lookup_min} is more than prompt_lookup_max {self.prompt_lookup_max}"
            )
        return self

    @model_validator(mode="after")
    def _schedule_in_order(self) -> Self:
        if self.schedule is None:
            return self
        if self.num_speculative_tokens is None:
            raise ValueError(f"schedule needs num_speculative_tokens, which method {self.method} has not: remove it")
        _refuse_disorder(self.schedule)
        if highest := max((k for _, _, k in self.schedule if k > self.num_speculative_tokens), default=0):
            raise ValueError(
                f"schedule drafts {highest} tokens, but num_speculative_tokens is {self.num_speculative_tokens}: the "
                "engine would draft no more than that; raise it or lower the schedule"
            )
        return self

    @property
    def draft_settings(self) -> Draft | None:
        """The draft, however it was written."""
        return Draft(model=self.draft) if isinstance(self.draft, str) else self.draft


def _refuse_disorder(schedule: Sequence[BatchRange]) -> None:
    before = 0
    for number, (first, last, _) in enumerate(schedule):
        if number == 0 and first != 1:
            raise ValueError(f"schedule begins with {first} running requests: begin with 1")
        if last < first:
            raise ValueError(f"schedule: {first} to {last} is no range: write the smaller number first")
        if first <= before:
            raise ValueError(f"schedule: {first} to {last} overlaps the range before, which ends with {before}")
        before = last
