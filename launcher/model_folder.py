"""Reads what a model's folder says of itself: its configuration, and all tensors by the headers of safetensors files.

Weights are never read: of each file its length and header. What is strange in a foreign file becomes a fault in the
result, never an exception.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

_LONGEST_DESCRIPTION = 2**26
"""Bytes; a header or description that is longer is none."""
_READERS = 8
"""Files that are read at a time: on a network's file system each waits for its turn there."""
_TEXT_PARTS = (("text_config",), ("thinker_config", "text_config"), ("llm_config",), ("language_config",))
"""Where the configuration of a model that also sees or hears has that of its language model."""
_INDICES = ("model.safetensors.index.json", "consolidated.safetensors.index.json", "pytorch_model.bin.index.json")
_WIDTHS: Mapping[str, int] = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Bits of one element, by the names that safetensors has for types."""


class Tensor(NamedTuple):
    """One tensor of a checkpoint."""

    name: str
    dtype: str
    """As safetensors calls it: ``BF16``, ``F8_E4M3``, ``I8``..."""
    shape: tuple[int, ...]
    size: int
    """Bytes."""
    file: str

    @property
    def elements(self) -> int:
        """Numbers in it; of packed ones the containers."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What a folder says; empty where it says nothing."""

    path: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    """``config.json`` as it is."""
    quantization: Mapping[str, Any] = field(default_factory=dict)
    """Its quantization, wherever it is told; empty for none."""
    weight_files: Mapping[str, int] = field(default_factory=dict)
    """Name -> bytes, of the files that an engine loads."""
    tensors: tuple[Tensor, ...] = ()
    """Of all safetensors files that an engine loads; empty when there are only files of another kind."""
    missing: tuple[str, ...] = ()
    """Files that an index names and that are not there."""
    faults: tuple[str, ...] = ()
    """What cannot be read, or contradicts itself, one sentence each."""
    names: frozenset[str] = frozenset()
    """Of all files in it."""
    adapter: Mapping[str, Any] = field(default_factory=dict)
    """``adapter_config.json`` of a LoRA adapter."""
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    """``tokenizer_config.json``."""

    @property
    def text(self) -> Mapping[str, Any]:
        """The configuration of the language model: its own part, completed by what is said for the whole."""
        return text_part(self.config)

    @property
    def gguf(self) -> tuple[str, ...]:
        """Files in a format that only llama.cpp and its relatives read."""
        return tuple(sorted(name for name in self.names if name.endswith(".gguf")))

    @property
    def weight_bytes(self) -> int:
        """Of all files that an engine loads."""
        return sum(self.weight_files.values())


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a ``config.json`` says of the language model, where it has a part for it; else the whole."""
    for path in _TEXT_PARTS:
        part: object = config
        for key in path:
            part = part.get(key) if isinstance(part, Mapping) else None
        if isinstance(part, Mapping) and part:
            return {**config, **part}
    return config


def quantization_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a ``config.json`` says of quantization, wherever it says it; empty for nothing."""
    for part in (config, text_part(config)):
        for key in ("quantization_config", "compression_config"):
            if isinstance(found := part.get(key), Mapping) and found:
                return found
    return {}


def read(folder: Path) -> ModelFolder:
    """What ``folder`` says; raises nothing. The name of a folder that does not exist gives a result with one fault."""
    faults: list[str] = []
    try:
        names = {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}
    except OSError as exc:
        return ModelFolder(folder, faults=(f"{folder} cannot be read: {exc.strerror}",))
    config = json_object(folder / "config.json", faults) if "config.json" in names else {}
    adapter, tokenizer = (
        json_object(folder / name, faults) if name in names else {}
        for name in ("adapter_config.json", "tokenizer_config.json")
    )
    quantization = quantization_of(config) or _quantization_file(folder, names, faults)
    wanted, missing = _weight_files(folder, names, faults)
    files = {name: names[name] for name in wanted}
    tensors: list[Tensor] = []
    with ThreadPoolExecutor(_READERS) as pool:
        safe = [name for name in files if name.endswith(".safetensors")]
        for name, header in zip(safe, pool.map(_header, (folder / name for name in safe)), strict=True):
            tensors += _tensors(folder / name, files[name], header, faults)
    return ModelFolder(
        folder,
        config,
        quantization,
        files,
        tuple(tensors),
        missing,
        tuple(faults),
        frozenset(names),
        adapter,
        tokenizer,
    )


def _weight_files(folder: Path, names: Mapping[str, int], faults: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Those that an engine loads, and those that an index names and that are not there.

    As vLLM chooses: files of Mistral's own format first, then safetensors, then pickles; of those the index's, if any.
    """
    safe = sorted(name for name in names if name.endswith(".safetensors"))
    consolidated = [name for name in safe if name.startswith("consolidated")]
    pickles = sorted(name for name in names if name.endswith((".bin", ".pt")) and not name.startswith("training_args"))
    found = consolidated or safe or pickles
    kind = 1 if consolidated else 0 if safe or not pickles else 2
    if (index := _INDICES[kind]) not in names:
        return found, ()
    places = json_object(folder / index, faults).get("weight_map")
    if not isinstance(places, Mapping) or not places:
        faults.append(f"{folder / index} has no weight_map: it does not say which files hold the weights")
        return found, ()
    indexed = {place for place in places.values() if isinstance(place, str)}
    return [name for name in found if name in indexed], tuple(sorted(indexed - names.keys()))


def _quantization_file(folder: Path, names: Iterable[str], faults: list[str]) -> Mapping[str, Any]:
    """Older checkpoints tell it in a file of its own."""
    for name, method in (("hf_quant_config.json", "modelopt"), ("quant_config.json", "awq"),
                         ("quantize_config.json", "gptq")):  # fmt: skip
        if name in names and (told := json_object(folder / name, faults)):
            inner = told.get("quantization")
            return {"quant_method": method, **(inner if isinstance(inner, Mapping) else told)}
    return {}


def json_object(file: Path, faults: list[str]) -> dict[str, Any]:
    """What a file of a model describes; empty, with a fault added, where it is no JSON object or out of all measure."""
    try:
        if file.stat().st_size > _LONGEST_DESCRIPTION:
            raise ValueError
        found = json.loads(file.read_bytes())
    except OSError as exc:
        faults.append(f"{file} cannot be read: {exc.strerror}")
    except (ValueError, RecursionError):
        faults.append(f"{file} is no JSON")
    else:
        if isinstance(found, dict):
            return found
        faults.append(f"{file} is no JSON object")
    return {}


def _header(file: Path) -> bytes | str:
    """What the file says of its tensors, with the eight bytes before it; or what is wrong."""
    try:
        with file.open("rb", buffering=0) as opened:
            length = int.from_bytes(start := opened.read(8), "little")
            if len(start) < 8 or not 2 <= length <= _LONGEST_DESCRIPTION:
                return "is no safetensors file: it does not begin with a header"
            header = opened.read(length)
    except OSError as exc:
        return f"cannot be read: {exc.strerror}"
    return start + header if len(header) == length else "is cut off within its header"


def _tensors(file: Path, size: int, header: bytes | str, faults: list[str]) -> Iterator[Tensor]:
    if isinstance(header, str):
        faults.append(f"{file} {header}")
        return
    try:
        entries = json.loads(header[8:])
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        faults.append(f"{file} is no safetensors file: its header is no JSON object")
        return
    end = 0
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (first, last) = entry["dtype"], entry["shape"], entry["data_offsets"]
            tensor = Tensor(name, dtype, tuple(shape), last - first, file.name)
            expected = tensor.elements * _WIDTHS.get(dtype, 0) / 8
            if first < 0 or tensor.size < 0 or any(side < 0 for side in shape):
                raise ValueError
        except (TypeError, ValueError, KeyError, OverflowError):
            faults.append(f"{file}: its header says nothing sensible of the tensor {name}")
            continue
        if dtype in _WIDTHS and expected != tensor.size:
            faults.append(f"{file}: the tensor {name} has {tensor.size} bytes, its shape and type say {expected:.0f}")
        end = max(end, last)
        yield tensor
    if (whole := len(header) + end) > size:
        faults.append(f"{file} is cut off: it has {size:,} bytes and should have {whole:,}")
