"""Reads the instances' logs, also while they grow and rotate."""

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory

_POLL = 0.2
"""Seconds between two looks when following."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line and where it comes from."""

    instance: str
    text: str


def read(directory: RunDirectory, instance: str | None, lines: int, *, follow: bool) -> Iterator[LogLine]:
    """The last ``lines`` of one instance or of all, then with ``follow`` every new one, for ever."""
    known = directory.logged_instances()
    if instance is not None and instance not in known:
        have = f"there are {', '.join(known)}" if known else f"nothing has run in {directory.path} yet"
        raise RunDirectoryError(f"there is no log of {instance}: {have}")
    if not known and not follow:
        raise RunDirectoryError(f"there are no logs: nothing has run in {directory.path} yet")
    tails: dict[str, _Tail] = {}
    with ExitStack() as files:

        def tail(name: str) -> _Tail:
            if name not in tails:
                tails[name] = _Tail(name, directory.log(name))
                files.callback(tails[name].close)
            return tails[name]

        for name in [instance] if instance else known:
            yield from deque(tail(name).new(), maxlen=lines)
        while follow:
            for name in [instance] if instance else directory.logged_instances():
                yield from tail(name).new()
            time.sleep(_POLL)


class _Tail:
    """One growing log file; when it is rotated, the rest of the old one comes first."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def new(self) -> Iterator[LogLine]:
        """The lines since the last call; the first call returns all."""
        if self._file is not None:
            yield from self._lines(self._file)
            if not self._was_rotated(self._file):
                return
            yield from self._lines(self._file)  # what came before the rotation and after the reading
            self.close()
        with suppress(FileNotFoundError):  # in the midst of a rotation
            self._file = self._path.open("rb")
            yield from self._lines(self._file)

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _was_rotated(self, file: BinaryIO) -> bool:
        try:
            return os.fstat(file.fileno()).st_ino != self._path.stat().st_ino
        except FileNotFoundError:
            return False

    def _lines(self, file: BinaryIO) -> Iterator[LogLine]:
        *lines, self._rest = (self._rest + file.read()).split(b"\n")
        yield from (LogLine(self._name, line.decode("utf-8", "replace")) for line in lines if line)
