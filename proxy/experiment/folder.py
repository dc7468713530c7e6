"""The files of one experiment, beside the configuration: each process's sums, and why it has ended.

Each process writes its own file only, so that none waits for another, and what ended ones have counted stays.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from proxy.experiment.answer import Ending
from proxy.experiment.sums import Sums, dumped, loaded

EXPERIMENTS = "experiment"
"""The folder of all, in that of the configuration."""
_ENDED = "ended.json"


class ExperimentFolder:
    """That of the experiment of one split; without a configuration's path nothing is kept."""

    def __init__(self, configuration: Path | None, split_id: str) -> None:
        self._folder = None if configuration is None else configuration.parent / EXPERIMENTS / split_id
        self._own = f"{os.getpid()}-{time.time_ns()}.json"
        self._read: dict[Path, tuple[tuple[int, int, int], Sums]] = {}

    def write(self, sums: Sums) -> None:
        """This process's own, in place of the last; raises :class:`OSError`."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        _replace(self._folder / self._own, dumped(sums))

    def others(self) -> Iterator[Sums]:
        """Those of all other processes, also of those that have ended; raises :class:`OSError`, :class:`ValueError`."""
        for file in () if self._folder is None else sorted(self._folder.glob("[0-9]*-[0-9]*.json")):
            if file.name == self._own:
                continue
            status = file.stat()
            signature = (status.st_ino, status.st_mtime_ns, status.st_size)
            known = self._read.get(file)
            if known is None or known[0] != signature:
                known = self._read[file] = (signature, loaded(file.read_bytes()))
            yield known[1]

    def ended(self) -> Ending | None:
        """By whichever process; raises :class:`OSError`, :class:`ValueError`."""
        if self._folder is None:
            return None
        try:
            text = (self._folder / _ENDED).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return TypeAdapter(Ending).validate_json(text)
        except ValidationError as exc:
            raise ValueError(f"{self._folder / _ENDED} does not say why the experiment has ended: {exc}") from exc

    def end(self, ending: Ending) -> Ending:
        """End it, unless another process has; the ending that counts. Raises :class:`OSError`, :class:`ValueError`."""
        if self._folder is None:
            return ending
        self._folder.mkdir(parents=True, exist_ok=True)
        own = self._folder / f"ended.{os.getpid()}"
        own.write_text(json.dumps(asdict(ending)))
        try:
            os.link(own, self._folder / _ENDED)  # fails where there is one
        except FileExistsError:
            pass
        finally:
            own.unlink()
        return self.ended() or ending


def _replace(file: Path, text: bytes) -> None:
    new = file.with_suffix(".new")
    new.write_bytes(text)
    new.replace(file)
