"""Writes files for another program to use, and overwrites only what it has written itself."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from launcher.errors import RunDirectoryError
from launcher.plan import PlannedFile

_MANIFEST = ".duet-rendered.json"
"""File -> digest of what was written."""


def write(folder: Path, files: Iterable[PlannedFile], *, force: bool = False) -> list[Path]:
    """Write all or, with a :class:`RunDirectoryError`, none; those of an earlier time that are no longer wanted.

    Refused without ``force``: a file that somebody else has written, or has changed since.
    """
    wanted = {Path(file.path): file.content.encode() for file in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = _known(folder / _MANIFEST)
        if odd := [path for path in wanted if path.exists() and not path.is_file()]:
            raise RunDirectoryError(f"{', '.join(map(str, odd))}: no ordinary file; choose another --out")
        there = {path: path.read_bytes() for path in {*wanted, *(folder / name for name in known)} if path.exists()}
        strangers = [
            path
            for path, content in wanted.items()
            if path in there and there[path] != content and known.get(path.name) != _digest(there[path])
        ]
        if strangers and not force:
            raise RunDirectoryError(
                f"{', '.join(map(str, strangers))}: written by somebody else, or changed since; choose another --out, "
                "or overwrite with --force"
            )
        for path, content in wanted.items():
            _replace(path, content)
        old = {name: digest for name, digest in known.items() if folder / name in there}
        manifest = {**old, **{path.name: _digest(content) for path, content in wanted.items()}}
        _replace(folder / _MANIFEST, (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode())
    except OSError as exc:
        raise RunDirectoryError(f"cannot write {exc.filename or folder}: {exc.strerror}; choose another --out") from exc
    return sorted(path for path in there if path not in wanted)


def _known(manifest: Path) -> dict[str, str]:
    try:
        found = json.loads(manifest.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    os.replace(new, path)
