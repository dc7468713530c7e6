"""Keeps in the run directory what each start of an engine measured, beside what was planned."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from launcher.sizing.measured import Measured

FILE = "sizes.jsonl"
_MOST = 1000
"""Lines that are kept."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What was planned of an engine; bytes of one device."""

    weights: int
    kv_memory: int | None
    tokens: int | None
    concurrency: float | None


@dataclass(frozen=True, slots=True)
class Record:
    """One start."""

    at: float
    """Seconds since the epoch."""
    instance: str
    key: str
    """Alike for starts of engines that need the same memory: see :func:`launcher.sizing.deployment.key_of`."""
    planned: Planned
    real: Measured


def append(directory: Path, record: Record) -> None:
    """Add one start; raises :class:`OSError`."""
    file = directory / FILE
    lines = _lines(file)[-_MOST + 1 :]
    new = file.with_name(file.name + ".new")
    new.write_text(
        "".join(f"{line}\n" for line in (*lines, json.dumps(_record_type().dump_python(record, mode="json"))))
    )
    new.replace(file)


def read(directory: Path) -> Iterator[Record]:
    """All starts that are kept, oldest first; lines of another version are passed over."""
    for line in _lines(directory / FILE):
        with suppress(ValidationError):
            yield _record_type().validate_json(line)


def latest(records: Iterable[Record]) -> dict[str, Record]:
    """The last start of each instance."""
    return {record.instance: record for record in records}


def to_json(records: Iterable[Record]) -> str:
    """As an indented JSON list."""
    return json.dumps([_record_type().dump_python(record, mode="json") for record in records], indent=2)


def by_key(records: Iterable[Record]) -> dict[str, Measured]:
    """What the last start of each kind of engine told."""
    return {record.key: record.real for record in records}


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


@cache
def _record_type() -> TypeAdapter[Record]:
    """Built when it is needed: most verbs do not, and start sooner."""
    return TypeAdapter(Record)
