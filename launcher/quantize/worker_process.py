"""Runs one step in the worker's interpreter and listens to what it tells."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from launcher.errors import QuantizeError
from launcher.local.keeper import die_with_parent

_CODE = Path(__file__).with_name("worker")
_REFUSED = 3
_TAIL = 12
"""Lines of its log that are shown when it ends by itself."""


class Listener(Protocol):
    """What a person sees of a step."""

    def progress(self, title: str, done: int, of: int) -> None:
        """So many of so many steps."""

    def note(self, text: str) -> None:
        """Something to know."""


class Worker:
    """An interpreter that has llm-compressor."""

    def __init__(self, python: Path, folder: Path, environ: Mapping[str, str], listener: Listener) -> None:
        """``folder``: where job files, results and logs go."""
        self._python, self._folder, self._listener = python, folder, listener
        kept = {name: text for name, text in environ.items() if not name.startswith("PYTHON")}
        self._env = {
            **kept,
            "PYTHONPATH": str(_CODE),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }

    def run(self, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a step; ``name`` is that of its files.

        Raises :class:`QuantizeError` for a refused input, in the worker's words, and when it ends by itself.
        """
        file, result, log = (self._folder / f"{name}{suffix}" for suffix in (".job.json", ".json", ".log"))
        file.write_text(json.dumps({**job, "result": str(result)}))
        try:
            refused = self._follow(file, log, name)
        except OSError as exc:
            if exc.filename != str(self._python):
                raise
            raise QuantizeError(
                f"{self._python} cannot be run ({exc.strerror}): name an interpreter that has llm-compressor, or run "
                "`launcher quantize setup`"
            ) from exc
        if refused is not None:
            raise QuantizeError(refused)
        found: dict[str, Any] = json.loads(result.read_text())
        return found

    def _follow(self, file: Path, log: Path, name: str) -> str | None:
        parent = os.getpid()
        command = [str(self._python), "-P", "-m", "duet_quantizing", str(file)]
        refused = None
        with (
            log.open("wb") as errors,
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                text=True,
                env=self._env,
                preexec_fn=lambda: die_with_parent(parent),
            ) as process,
        ):
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    refused = self._heard(line) or refused
            except BaseException:
                process.kill()
                raise
        code = process.returncode
        if code == 0:
            return None
        if code == _REFUSED and refused:
            return refused
        tail = log.read_text(errors="replace").splitlines()[-_TAIL:]
        raise QuantizeError(_ended(name, code, tail, log, self._python), tail)

    def _heard(self, line: str) -> str | None:
        try:
            event = json.loads(line)
        except ValueError:  # a library's own words
            return None
        if not isinstance(event, dict) or "event" not in event:
            return None
        if event["event"] == "progress":
            self._listener.progress(event["title"], event["done"], event["of"])
        elif event["event"] == "note":
            self._listener.note(event["text"])
        else:
            return str(event["text"])
        return None


def _ended(name: str, code: int, tail: list[str], log: Path, python: Path) -> str:
    said = "\n".join(tail)
    if code == -9 or "out of memory" in said.lower() or "MemoryError" in said:
        fix = "it ran out of memory: use fewer or shorter records (--records, --max-tokens), or a larger machine"
    elif "No space left" in said:
        fix = "the disk is full: free some space, or name another --out"
    elif "No module named" in said:
        fix = f"{python} lacks a package: name an interpreter that has llm-compressor, or run `launcher quantize setup`"
    else:
        fix = "what it wrote last is above"
    return f"the step {name} ended with {code}: {fix}; all of it is in {log}"
