"""Small files by which the processes of one proxy know of each other; each writes its own."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PRESENT = "present"
"""The kind of notes that are worth nothing once their process has ended."""


class Notes:
    """Notes of one kind in a folder; without a folder there is only this process."""

    def __init__(self, folder: Path | None, kind: str) -> None:
        self._folder = folder
        self._kind = kind

    @property
    def are_read(self) -> bool:
        """Whether there is anybody else."""
        return self._folder is not None

    def write(self, document: object) -> None:
        """This process's own, in place of the last one; raises :class:`OSError`."""
        if self._folder is not None:
            own = self._file(self._folder, os.getpid())
            new = own.with_suffix(".new")
            new.write_text(json.dumps(document))
            new.replace(own)

    def others(self) -> Iterator[Any]:
        """Those of all other processes."""
        if self._folder is None:
            return
        own = self._file(self._folder, os.getpid())
        for note in self._folder.glob(f"{self._kind}_*.json"):
            try:
                if note != own:
                    yield json.loads(note.read_bytes())
            except FileNotFoundError:  # its process has ended this moment
                continue

    def forget(self, pid: int) -> None:
        """A process has ended."""
        if self._folder is not None:
            self._file(self._folder, pid).unlink(missing_ok=True)

    def _file(self, folder: Path, pid: int) -> Path:
        return folder / f"{self._kind}_{pid}.json"
