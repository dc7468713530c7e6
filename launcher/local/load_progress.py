"""What an engine is doing while it loads, read from its log."""

import os
from pathlib import Path

from launcher import loading
from launcher.local.keeper import RUN_MARK

MEANINGFUL = 300
"""Last lines in which to look for what was wrong: vLLM's processes tell of each other's ends below it."""


class LoadProgress:
    """Follows the log file of one starting engine."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = log.stat().st_size if log.exists() else 0
        self._rest = ""
        self.now = loading.FIRST

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
        self.now = loading.after(lines, self.now)
        return self.now != before


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
