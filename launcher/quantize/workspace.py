"""The folders of one quantization: work, report, and what is published."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launcher.errors import QuantizeError

_CONFIG = "config.json"
_HIDDEN = "config.json.not-published"
"""A folder without config.json is no model to anybody; so a candidate that did not pass is not served by mistake."""
_READABLE = 0o644


class Workspace:
    """``OUT.work`` keeps finished steps, so that a run that was interrupted goes on; ``OUT.report`` is for people."""

    def __init__(self, out: Path) -> None:
        """Raises :class:`QuantizeError` for a path that names nothing."""
        if out.name in {"", ".."}:
            raise QuantizeError(f"--out {out} names no new folder: name one that does not exist, e.g. {out / 'int8'}")
        self.out = out
        self.work = out.with_name(f"{out.name}.work")
        self.report = out.with_name(f"{out.name}.report")

    @contextmanager
    def held(self) -> Iterator[None]:
        """While a run works here; raises :class:`QuantizeError` when another does, or ``out`` is taken."""
        if os.path.lexists(self.out):  # a link that leads nowhere is in the way, too
            raise QuantizeError(f"{self.out} exists: name a folder that does not, nothing is ever overwritten")
        for folder in (self.work, self.report):
            if os.path.lexists(folder) and not folder.is_dir():
                raise QuantizeError(f"{folder} is in the way, it is no folder: move it, or name another --out")
        try:
            self.work.mkdir(parents=True, exist_ok=True)
            with (self.work / "lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise QuantizeError(
                        f"another run works in {self.work}: wait for it, or name another --out"
                    ) from None
                yield
        except OSError as exc:
            raise QuantizeError(f"cannot write to {exc.filename or self.work}: {exc.strerror}") from exc

    def kept(self, name: str, key: Mapping[str, Any]) -> Path:
        """The file of a step's result."""
        return self.work / f"{name}-{digest_of(key)}.json"

    def once(
        self,
        name: str,
        key: Mapping[str, Any],
        make: Callable[[str], dict[str, Any]],
        is_whole: Callable[[dict[str, Any]], bool] = bool,
    ) -> dict[str, Any]:
        """The result of a step that depends on ``key`` alone: as it was kept, or made now under a name of its own.

        It is made again where what was kept is damaged, or ``is_whole`` says that what belongs to it is not there.
        """
        kept = self.kept(name, key)
        found = _read(kept)
        if found is not None and is_whole(found):
            return found
        made = make(kept.stem)
        new = kept.with_suffix(".new")
        new.write_text(json.dumps(made))
        new.replace(kept)
        return made

    def candidate(self, named: str) -> Path:
        """The folder of a checkpoint that is not published."""
        return self.work / named

    def publish(self, candidate: Path, papers: Mapping[str, str]) -> None:
        """The candidate becomes ``out``, at once, with ``papers`` (name -> text) in its folder ``duet``."""
        folder = candidate / "duet"
        folder.mkdir(exist_ok=True)
        for name, text in papers.items():
            (folder / name).write_text(text)
        for file in candidate.rglob("*"):
            if file.is_file():
                file.chmod(_READABLE)  # safetensors writes for the owner alone
        for path in (folder, candidate):
            _sync(path)
        candidate.rename(self.out)

    def clear(self) -> None:
        """Remove the work of a run that was published."""
        shutil.rmtree(self.work)


def show(candidate: Path) -> None:
    """Make it a model that can be served, for the gate."""
    if (hidden := candidate / _HIDDEN).exists():
        hidden.rename(candidate / _CONFIG)


def hide(candidate: Path) -> None:
    """Make it no model to anybody."""
    if (shown := candidate / _CONFIG).exists():
        shown.rename(candidate / _HIDDEN)


def weighs(candidate: Path) -> int:
    """Bytes of its weight files; 0 without a configuration."""
    if not any((candidate / name).is_file() for name in (_CONFIG, _HIDDEN)):
        return 0
    return sum(file.stat().st_size for file in candidate.glob("*.safetensors"))


def _read(kept: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(kept.read_bytes())
    except (FileNotFoundError, ValueError):  # not yet, or damaged
        return None
    return found if isinstance(found, dict) else None


def digest_of(key: Mapping[str, Any]) -> str:
    """Of anything that JSON can say."""
    return hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()


def digest_of_file(file: Path) -> str:
    """Of all its bytes; raises :class:`OSError`."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
