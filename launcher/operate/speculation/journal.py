"""Keeps what the controller has decided and why, and what it needs to go on after it was ended."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.state import Decision, State
from launcher.operate.speculation.steer import SteerState
from launcher.plain import plain


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one deployment."""

    mark: str
    """The deployment's."""
    full: Mapping[str, tuple[str, ...]]
    """The command line of each engine that speculates as the profile has it."""
    state: State | SteerState
    known: Knowledge


_LARGE = 16 * 2**20
"""Bytes of decisions, a week or more of them; then they begin anew, and those before are kept once."""
_MEMORY = TypeAdapter(Memory)


class Journal:
    """``speculation.jsonl``, a line for each decision, and ``speculation.json`` in a run directory.

    Of another pool than the main one they are ``speculation-<pool>.jsonl`` and ``speculation-<pool>.json``.
    """

    def __init__(self, directory: RunDirectory, pool: str) -> None:
        name = f"speculation-{pool}" if pool else "speculation"
        self.decisions = directory.path / f"{name}.jsonl"
        self._memory = directory.path / f"{name}.json"

    def remembered(self, mark: str) -> Memory | None:
        """Of this deployment; ``None`` where there is none, or it is another version's."""
        try:
            memory = _MEMORY.validate_json(self._memory.read_bytes())
        except (OSError, ValidationError):
            return None
        return memory if memory.mark == mark else None

    def remember(self, memory: Memory) -> None:
        """In place of what was there; raises :class:`RunDirectoryError`."""
        new = self._memory.with_suffix(".new")
        try:
            new.write_bytes(_MEMORY.dump_json(memory, indent=1))
            os.replace(new, self._memory)
        except OSError as exc:
            raise RunDirectoryError(f"cannot write {self._memory}: {exc.strerror}") from exc

    def note(self, decision: Decision, state: State | SteerState, *, done: str) -> None:
        """``done``: what became of it. Raises :class:`RunDirectoryError`."""
        line = {"at": time.time(), "done": done, **asdict(decision), "state": asdict(state)}
        try:
            if self.decisions.exists() and self.decisions.stat().st_size > _LARGE:
                os.replace(self.decisions, self.decisions.with_suffix(".jsonl.1"))
            with self.decisions.open("a") as file:
                file.write(json.dumps(plain(line)) + "\n")
        except OSError as exc:
            raise RunDirectoryError(f"cannot write {self.decisions}: {exc.strerror}") from exc
