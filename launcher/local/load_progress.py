"""What an engine is doing while it loads, read from its log."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.local.deployment import Loading
from launcher.local.keeper import RUN_MARK
from launcher.log_signatures import SIGNATURES


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of an engine's start."""

    title: str
    marker: re.Pattern[str]
    """Found in the log line that begins it."""


# Log lines of vLLM 0.32, in the order in which they appear.
STAGES = (
    Stage("importing vLLM", re.compile(r"\A")),
    Stage("reading the model's configuration", re.compile(r"non-default args")),
    Stage("starting the engine core", re.compile(r"Resolved architecture")),
    _WEIGHTS := Stage("loading weights", re.compile(r"Starting to load model")),
    Stage("allocating the KV cache", re.compile(r"Loading weights took")),
    Stage("warming up", re.compile(r"KV cache size")),
    Stage("starting the server", re.compile(r"init engine .* took")),
)

_PIECES = re.compile(r"% Completed \| (\d+)/(\d+)")
"""Of the files of weights."""

# Known ways to die, with what to do about them.

MEANINGFUL = 300
"""Last lines in which to look for what was wrong: vLLM's processes tell of each other's ends below it."""


class LoadProgress:
    """Follows the log file of one starting engine."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = log.stat().st_size if log.exists() else 0
        self._rest = ""
        self.now = Loading(STAGES[0].title, 0, len(STAGES))

    def advance(self) -> bool:
        """Read what is new; whether it has come further."""
        before = self.now
        try:
            with self._log.open(errors="replace") as file:
                if os.fstat(file.fileno()).st_size < self._offset:  # it was rotated
                    self._offset = 0
                file.seek(self._offset)
                *lines, self._rest = (self._rest + file.read()).split("\n")
                self._offset = file.tell()
        except FileNotFoundError:  # in the midst of a rotation
            return False
        for line in lines:
            self._read(line)
        return self.now != before

    def _read(self, line: str) -> None:
        for index in range(self.now.stage + 1, len(STAGES)):
            if STAGES[index].marker.search(line):
                self.now = Loading(STAGES[index].title, index, len(STAGES))
        # Those of a draft come later, and are few.
        if STAGES[self.now.stage] is _WEIGHTS and (pieces := _PIECES.search(line)):
            self.now = replace(self.now, done=int(pieces[1]), of=int(pieces[2]))


_PART = 16 << 20
"""Bytes."""


def last_lines(log: Path, count: int = 30, *, runs: int = 1) -> list[str]:
    """What the last runs wrote at their end, oldest line first; of a huge log only its last part is looked at."""
    try:
        with log.open("rb") as file:
            file.seek(-min(_PART, file.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    if lines and lines[-1].startswith(RUN_MARK):  # that it ended is said elsewhere
        lines.pop()
    starts = [number for number, line in enumerate(lines) if line.startswith(RUN_MARK) and line.endswith("started")]
    return lines[starts[-min(runs, len(starts))] + 1 if starts else 0 :][-count:]


def likely_cause(lines: list[str]) -> str | None:
    """What these last lines of a dead engine are known to mean, if anything."""
    text = "\n".join(lines)
    found = ((each.pattern.search(text), each.hint) for each in SIGNATURES)
    return next((hint.format(*match.groups()) for match, hint in found if match), None)


def wanted_memory(lines: Sequence[str]) -> bool:
    """Whether these last lines of a dead engine say that there was not enough memory."""
    text = "\n".join(lines)
    return any(each.about_memory and each.pattern.search(text) for each in SIGNATURES)
