"""What vLLM 0.32 makes of a model by the name of its architecture: data from its registry, and from Transformers'."""

import difflib
import json
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any

_POOLING = (
    *("ForTextEncoding", "EmbeddingModel", "ForSequenceClassification", "ForTokenClassification"),
    *("ForAudioClassification", "ForImageClassification", "ForVideoClassification", "ClassificationModel"),
    *("ForRewardModeling", "RewardModel", "Model"),
)
"""Endings by which the engine takes an architecture that it does not have for a base model that answers in numbers."""
_GENERATING = ("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel")


class Kind(Enum):
    """What can be done with a model of an architecture."""

    GENERATES = auto()
    DRAFTS = auto()
    """A part that only drafts for another model."""
    POOLS = auto()
    """Embeddings, classes, scores: no text."""
    BY_TRANSFORMERS = auto()
    """The engine has no code of its own for it, and runs that of Transformers."""
    BY_PLUGIN = auto()
    REMOVED = auto()
    """An older engine had it."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an architecture."""

    kind: Kind
    detail: str = ""
    """Of a plugin its address, of a removed one the last engine, of an unknown one the nearest name."""


@cache
def data() -> dict[str, Any]:
    """All lists, by kind."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "engine_models.json").read_text("utf-8"))
    return found


def look_up(architecture: str) -> Answer:
    """As the engine does, in its order."""
    lists = data()
    if architecture in lists["generate"]:
        return Answer(Kind.GENERATES)
    if architecture in lists["draft"]:
        return Answer(Kind.DRAFTS)
    if architecture in lists["pooling"] or _is_base(architecture):
        return Answer(Kind.POOLS)
    if architecture in lists["transformers"]:
        return Answer(Kind.BY_TRANSFORMERS)
    if architecture in lists["plugin"]:
        return Answer(Kind.BY_PLUGIN, lists["plugin"][architecture])
    if architecture in lists["removed"]:
        return Answer(Kind.REMOVED, lists["removed"][architecture])
    near = difflib.get_close_matches(architecture, lists["generate"], n=1, cutoff=0.8)
    return Answer(Kind.UNKNOWN, near[0] if near else "")


def knows_type(model_type: object) -> bool:
    """Whether the engine or Transformers reads a configuration of this ``model_type`` without the model's own code."""
    return model_type in data()["model_types"]


def _is_base(architecture: str) -> bool:
    """Whether it ends like an embedding or a classifier on top of a model that the engine has."""
    for ending in _POOLING:
        if architecture.endswith(ending):
            start = architecture.removesuffix(ending)
            return any(start + generating in data()["generate"] for generating in _GENERATING)
    return False
