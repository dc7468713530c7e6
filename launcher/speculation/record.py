"""Keeps what was measured, a line for each load of each start, so that a tuning that was killed goes on."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from launcher.errors import MeasureError
from launcher.plain import plain
from launcher.speculation.evidence_file import numbers
from launcher.speculation.setting import Cell, Start, Visit

VISITS = "visits.jsonl"
"""In the work folder."""
_VISIT = TypeAdapter(Visit)


class Record:
    """``settings``: what must be the same for the lines to belong together; a difference is an error."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Raises :class:`MeasureError` when the folder cannot be used, or holds another tuning."""
        self.file = folder / VISITS
        self.visits: list[Visit] = []
        wanted = json.loads(json.dumps(plain(dict(settings))))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = self.file.read_text("utf-8").splitlines(keepends=True) if self.file.exists() else []
        except (OSError, UnicodeDecodeError) as exc:
            raise MeasureError(f"{self.file}: cannot be read ({exc}): choose another folder by --work") from exc
        whole = [line for line in lines if line.endswith("\n")]  # what was written as it was killed is measured again
        if whole:
            self._take(whole, wanted)
        if not whole or len(whole) < len(lines):
            self._rewrite(whole or [json.dumps(wanted) + "\n"])

    def missing(self, start: Start) -> tuple[Cell, ...]:
        """Loads of a start that are not measured yet, in its order."""
        done = {
            (each.point.concurrency, each.point.temperature)
            for each in self.visits
            if (each.stage, each.number, each.setting) == (start.stage, start.number, start.setting.name)
        }
        return tuple(cell for cell in start.cells if (cell.concurrency, cell.temperature) not in done)

    def add(self, visit: Visit) -> None:
        """Raises :class:`MeasureError` when it cannot be written."""
        self.visits.append(visit)
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(plain(asdict(visit))) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise MeasureError(f"{self.file}: cannot be written: {exc.strerror}") from exc

    def of_stage(self, prefix: str) -> list[Visit]:
        """``sweep`` or ``confirm 1``..."""
        return [each for each in self.visits if each.stage.startswith(prefix)]

    def _take(self, lines: list[str], wanted: dict[str, Any]) -> None:
        try:
            head, *rest = (json.loads(line) for line in lines)
            head = dict(head)
            self.visits += [_VISIT.validate_python(numbers(each)) for each in rest]
        except (TypeError, ValueError, ValidationError) as exc:
            raise MeasureError(
                f"{self.file}: a line cannot be read ({str(exc).splitlines()[0]}): remove the file to begin again"
            ) from exc
        if head != wanted:
            different = sorted(key for key in {*head, *wanted} if head.get(key) != wanted.get(key))
            raise MeasureError(
                f"{self.file} holds another tuning ({', '.join(different)} differ): remove it to begin "
                "again, or choose another folder by --work"
            )

    def _rewrite(self, lines: list[str]) -> None:
        try:
            self.file.write_text("".join(lines), "utf-8")
        except OSError as exc:
            raise MeasureError(f"{self.file}: cannot be written ({exc.strerror}): choose another by --work") from exc
