"""Reads which text each token of a tokenizer stands for; what cannot be read is not known, never an exception."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = (
    *("tokenizer.json", "tokenizer.model", "tokenizer.model.v*", "tekken.json", "vocab.json", "vocab.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "*.tiktoken", "tiktoken.model", "tokenization_*.py"),
)
"""Files of which one is enough to make a tokenizer."""
_LONGEST = 2**27
"""Bytes; no vocabulary is longer."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """All tokens of a tokenizer."""

    tokens: Mapping[str, int]
    """Text -> number, the added ones included."""
    added: Mapping[str, int] = field(default_factory=dict)
    """Those beside the vocabulary: mostly marks of the chat template."""

    @property
    def highest(self) -> int:
        """The greatest number of a token; -1 for a tokenizer without any."""
        return max(self.tokens.values(), default=-1)


def has_tokenizer(folder: Path) -> bool:
    """Whether there is any file that a tokenizer is made of."""
    return any(True for name in NAMES for _ in folder.glob(name))


def read(folder: Path) -> Tokenizer | None:
    """From ``tokenizer.json``, or from ``vocab.json``; ``None`` where neither can be read."""
    described = _object(folder / "tokenizer.json")
    if described:
        model = described.get("model")
        tokens = _vocabulary(model.get("vocab") if isinstance(model, Mapping) else None)
        added = dict(_added(described.get("added_tokens")))
        return Tokenizer({**tokens, **added}, added) if tokens else None
    tokens = _vocabulary(_object(folder / "vocab.json"))
    added = _vocabulary(_object(folder / "added_tokens.json"))
    return Tokenizer({**tokens, **added}, added) if tokens else None


def _vocabulary(told: object) -> dict[str, int]:
    """A mapping, or of Unigram a list of texts with scores."""
    if isinstance(told, Mapping):
        return {text: number for text, number in told.items() if isinstance(number, int)}
    if isinstance(told, list):
        return {str(each[0]): number for number, each in enumerate(told) if isinstance(each, list) and each}
    return {}


def _added(told: object) -> Iterator[tuple[str, int]]:
    for each in told if isinstance(told, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("id"), int):
            yield str(each.get("content")), each["id"]


def _object(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _LONGEST:
            return {}
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
