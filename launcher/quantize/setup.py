"""Makes the interpreter in which quantization works, and finds it again."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from launcher.errors import QuantizeError
from launcher.local.keeper import die_with_parent

LOCK = Path(__file__).with_name("worker") / "requirements.txt"
VARIABLE = "DUET_QUANTIZE_PYTHON"
_TORCH = "torch>=2.10,<2.15"
"""What llm-compressor 0.14 takes, where Duet's own interpreter has none to copy."""
_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's own index of builds for a CPU; the default index may have only those for CUDA."""
_SHOWN = 8
_UNFINISHED = "unfinished"
"""A file that is in it until all is installed."""


def worker_python(given: Path | None, cache: Path, environ: Mapping[str, str]) -> Path:
    """The interpreter: as given, of the environment variable, or the one that :func:`make` made.

    Raises :class:`QuantizeError` when there is none.
    """
    named = given or (Path(environ[VARIABLE]) if environ.get(VARIABLE) else None)
    if named is not None:
        if not named.is_file():
            raise QuantizeError(f"there is no interpreter {named}: name one that has llm-compressor (extra `quantize`)")
        return named.absolute()
    python = folder(cache) / "bin" / "python"
    if not _is_whole(folder(cache)):
        raise QuantizeError(
            "quantization works in an interpreter of its own, which is not there yet: run `launcher quantize setup` "
            f"(1.5 GB on disk for a CPU, a minute or two), or name one that has llm-compressor with {VARIABLE}"
        )
    return python


def folder(cache: Path) -> Path:
    """Where :func:`make` makes it; another for other contents."""
    digest = hashlib.blake2b(LOCK.read_bytes() + _torch().encode(), digest_size=6).hexdigest()
    return cache / f"quantize-{digest}"


def make(cache: Path, tell: Callable[[str], None]) -> Path:
    """Once; whole or not at all. Raises :class:`QuantizeError` with what pip said."""
    target = folder(cache)
    python = target / "bin" / "python"
    if _is_whole(target):
        return python
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / ".quantize.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_whole(target):
                shutil.rmtree(target, ignore_errors=True)  # of a run that was killed
                _make(target, tell)
    except OSError as exc:
        raise QuantizeError(f"cannot write {target}: {exc.strerror}; set DUET_CACHE to another folder") from exc
    return python


def _make(target: Path, tell: Callable[[str], None]) -> None:
    torch = _torch()
    tell(f"Making an interpreter with llm-compressor and {torch} in {target}")
    # An environment knows its own path, so it is made in place, and marked until it is whole.
    target.mkdir()
    (target / _UNFINISHED).touch()
    python = target / "bin" / "python"
    try:
        _run(
            [sys.executable, "-m", "venv", str(target)],
            "make a virtual environment (on Debian: apt-get install python3-venv)",
        )
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(LOCK), torch]
        try:
            _run(pip, "install llm-compressor")
        except QuantizeError as exc:
            if not any("No matching distribution found for torch" in line for line in exc.log_tail):
                raise
            index = os.environ.get("DUET_TORCH_INDEX", _TORCH_INDEX)
            tell("The default package index has no such build of torch: adding PyTorch's own index")
            _run([*pip, "--extra-index-url", index], "install llm-compressor")
        _run([str(python), "-c", "import llmcompressor"], "import llm-compressor")
        (target / _UNFINISHED).unlink()
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(target)
        raise


def _is_whole(target: Path) -> bool:
    return (target / "bin" / "python").is_file() and not (target / _UNFINISHED).exists()


def _torch() -> str:
    """The same build as here: it fits the machine, and may already be in pip's cache."""
    try:
        return f"torch=={version('torch')}"
    except PackageNotFoundError:
        return _TORCH


def _run(command: list[str], what: str) -> None:
    parent = os.getpid()
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            command, stdout=output, stderr=output, check=False, preexec_fn=lambda: die_with_parent(parent)
        )
        output.seek(0)
        said = output.read().strip().splitlines()
    if done.returncode != 0:
        # pip ends with what matters; a missing build is named a few lines before.
        raise QuantizeError(f"could not {what}: what it said last is above", said[-_SHOWN:])
