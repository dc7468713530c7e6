"""A digest of a model's folder that costs the same for a file of one gigabyte and of a hundred.

Of each weight file go into it: its name and size, the header of a safetensors file (names, types, shapes and places of
all tensors), and 256 blocks of 4 KiB at even distances over the whole file, the first and the last included: 1 MiB a
file. Configuration, tokenizer and chat template go into it as they are.

So it tells other weights, another fine-tune, another quantization, a half-copied or truncated file. It can miss a
change that keeps every name, size and header and lies between the blocks: up to 1/255 of a file, 20 MB of 5 GB. A
fine-tune of all layers cannot hide there; one small tensor that was changed can. It does not protect from anybody who
wants to deceive it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from launcher.fingerprint import checkpoints
from launcher.inventory import Checkpoint, Inventory
from launcher.plan import Plan

_WEIGHTS = frozenset({".safetensors", ".bin", ".pt", ".pth", ".gguf"})
_DESCRIPTIONS = frozenset({".json", ".jinja", ".model", ".txt", ".py", ".tiktoken"})
"""Configuration, index, generation defaults, tokenizer, chat template, a model's own code."""
_BLOCKS, _BLOCK = 256, 4096
_LONGEST_HEADER = 2**26
"""Bytes; a file that claims more is no safetensors file."""
_READERS = 8
"""Files that are read at a time: on a network's file system each block waits for its turn there."""


def with_weights(inventory: Inventory, plan: Plan, environ: Mapping[str, str]) -> Inventory:
    """The inventory with the digests of all that the plan's engines load."""
    wanted = {checkpoint for engine in plan.engines for checkpoint in checkpoints(engine).values()}
    return replace(inventory, weights=digests(wanted, environ))


def digests(wanted: Iterable[Checkpoint], environ: Mapping[str, str]) -> Mapping[Checkpoint, str]:
    """The digests of those that are on this machine and can be read; ``environ`` tells where hub models are kept."""
    found = {}
    for checkpoint in wanted:
        folder = folder_of(checkpoint, environ)
        try:
            if folder is not None and (made := digest(folder)) is not None:
                found[checkpoint] = made
        except OSError:
            continue
    return found


def folder_of(checkpoint: Checkpoint, environ: Mapping[str, str]) -> Path | None:
    """Where it lies: the folder itself, or that into which the hub's files were loaded; ``None`` when it does not."""
    folder = Path(checkpoint.name)
    if folder.is_absolute():
        return folder if folder.is_dir() else None
    home = environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    hub = Path(environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or Path(home, "hub"))
    with suppress(RuntimeError):  # of ~somebody who is not there
        hub = hub.expanduser()
    kept = hub / f"models--{checkpoint.name.replace('/', '--')}"
    revision = checkpoint.revision or "main"
    with suppress(OSError):  # then it names a commit itself
        revision = (kept / "refs" / revision).read_text().strip()
    snapshot = kept / "snapshots" / revision
    return snapshot if snapshot.is_dir() else None


def digest(folder: Path) -> str | None:
    """32 hexadecimal digits, or ``None`` for a folder without weights; raises :class:`OSError`."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    weights = [file for file in files if file.suffix in _WEIGHTS]
    if not weights:
        return None
    whole = blake2b(digest_size=16)
    with ThreadPoolExecutor(_READERS) as pool:
        for file, part in zip(weights, pool.map(_sampled, weights), strict=True):
            _add(whole, file.name.encode(), part)
    for file in files:
        if file.suffix in _DESCRIPTIONS:
            _add(whole, file.name.encode(), file.read_bytes())
    return whole.hexdigest()


def _sampled(file: Path) -> bytes:
    part = blake2b(digest_size=32)
    with file.open("rb", buffering=0) as opened:
        descriptor = opened.fileno()
        size = os.fstat(descriptor).st_size
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # else each block brings its neighbours along
        _add(part, str(size).encode(), _header(descriptor, file.suffix))
        for start in _starts(size):
            part.update(os.pread(descriptor, _BLOCK, start))
    return part.digest()


def _starts(size: int) -> Iterator[int]:
    last = max(0, size - _BLOCK)
    yield from sorted({last * number // (_BLOCKS - 1) for number in range(_BLOCKS)})


def _header(descriptor: int, suffix: str) -> bytes:
    """Of a safetensors file: its length in eight bytes, and what it says of the tensors."""
    if suffix != ".safetensors":
        return b""
    length = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    return os.pread(descriptor, length, 8) if length <= _LONGEST_HEADER else b""


def _add(sink: "blake2b", *parts: bytes) -> None:
    """Each with its length, so that no two lists of parts look alike."""
    for part in parts:
        sink.update(len(part).to_bytes(8, "little"))
        sink.update(part)
