"""Looks up what is known of models: their folders on this machine, else the small files that come with Duet."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from launcher.inventory import Checkpoint
from launcher.model_folder import ModelFolder, Tensor, quantization_of, read
from launcher.weights import folder_of


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model."""

    source: str
    """Where it is known from."""
    config: Mapping[str, Any]
    quantization: Mapping[str, Any] = field(default_factory=dict)
    tensors: tuple[Tensor, ...] = ()
    """Empty when they are not known: then they are counted."""
    weight_bytes: int = 0
    """Of files whose tensors are not known; 0: unknown."""
    is_whole: bool = True
    """No file that its index names is missing."""


def look_up(wanted: Iterable[Checkpoint], environ: Mapping[str, str]) -> Mapping[Checkpoint, ModelFacts]:
    """Those that are known; ``environ`` tells where hub models are kept."""
    found = {}
    for checkpoint in wanted:
        name = Path(checkpoint.name).name if Path(checkpoint.name).is_absolute() else checkpoint.name
        if (facts := _of_folder(checkpoint, environ) or _known().get(name)) is not None:
            found[checkpoint] = facts
    return found


def _of_folder(checkpoint: Checkpoint, environ: Mapping[str, str]) -> ModelFacts | None:
    folder = folder_of(checkpoint, environ)
    if folder is None:
        return None
    said = _read(folder, tuple(_state(folder)))
    if not said.config:
        return None
    tensors = said.tensors if not said.missing and not said.faults else ()
    has_unread = not tensors and not said.missing
    return ModelFacts(
        source=f"the folder {folder}",
        config=said.config,
        quantization=said.quantization,
        tensors=tensors,
        weight_bytes=said.weight_bytes if has_unread else 0,
        is_whole=not said.missing,
    )


@lru_cache(maxsize=4)
def _read(folder: Path, state: tuple[tuple[str, int, int], ...]) -> ModelFolder:
    """Once for each state of its files: a checkpoint of many experts has tens of thousands of tensors."""
    return read(folder)


def _state(folder: Path) -> Iterator[tuple[str, int, int]]:
    with suppress(OSError):
        for file in sorted(folder.iterdir()):
            status = file.stat()
            yield file.name, status.st_size, status.st_mtime_ns


@cache
def _known() -> Mapping[str, ModelFacts]:
    """Hub id, or the folder of a bundled model -> what its ``config.json`` says, from files that come with Duet."""
    folder = files("launcher.sizing") / "known_models"
    shipped = [json.loads(file.read_text()) for file in folder.iterdir() if file.name.endswith(".json")]
    return {
        each.get("bundled", each["hub_id"]): ModelFacts(
            source=f"its config.json as shipped with Duet ({each['hub_id']}, {each['provenance']})",
            config=each["config"],
            quantization=quantization_of(each["config"]),
        )
        for each in shipped
    }
