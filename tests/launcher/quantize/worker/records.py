"""Writes files of records."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from launcher.quantize.worker.duet_quantizing.telling import Tell


class Heard(Tell):
    """Keeps what a step tells."""

    def __init__(self) -> None:
        self.told: list[dict[str, object]] = []

    def _say(self, **event: object) -> None:
        self.told.append(event)


def chat(asked: str, answered: str | None = None, **other: Any) -> dict[str, Any]:
    """A conversation of one question."""
    answer = [] if answered is None else [{"role": "assistant", "content": answered}]
    return {"messages": [{"role": "user", "content": asked}, *answer], **other}


def write(path: Path, records: Iterable[Any]) -> Path:
    """One a line; text as it is."""
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
    return path


def sentences(count: int, seed: int = 0, words: int = 40, vocabulary: int = 2000) -> list[str]:
    """Different texts; words come as often as they do in language, some much more often than others."""
    chance = random.Random(seed)
    weights = [1 / (rank + 2) for rank in range(vocabulary)]
    names = [f"w{rank}" for rank in range(vocabulary)]
    return [" ".join(chance.choices(names, weights, k=words)) for _ in range(count)]
