"""Draws records from a file of any size, in one pass and without holding it."""

import heapq
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .record import FORMS, Record, read
from .telling import RefusedError, Tell

_LONGEST = 1 << 24
"""Bytes of a line; more is not one record."""
_TOLD = 5
"""Unreadable lines that are told of."""
_SHARE = 10
"""Per cent of the lines that may be unreadable."""


@dataclass(slots=True)
class Drawn:
    """Some of a file's records, all different, in an order of chance."""

    read: int = 0
    """Lines, but for blank ones."""
    unreadable: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    """The first unreadable lines: ``line`` and ``why``."""
    empty: int = 0
    duplicates: int = 0
    """Records that were there before, word for word."""
    records: list[Record] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        """Of the file."""
        return {
            "read": self.read,
            "unreadable": self.unreadable,
            "faults": self.faults,
            "empty": self.empty,
            "duplicates": self.duplicates,
        }


def draw(path: str, count: int, seed: int, tell: Tell) -> Drawn:
    """At most ``count`` records, the same for the same seed, whatever the order of the lines.

    Those whose keyed digests are smallest: a draw in which a text that comes often has no more chance than others, and
    in which duplicates fall together by themselves. It takes the memory of the draw and 8 bytes a record. Raises
    :class:`RefusedError` for what is no such file.
    """
    drawn = Drawn()
    chosen: list[tuple[int, int, Record]] = []  # a heap with the largest digest first
    held: set[int] = set()
    digests = array("Q")
    key = seed.to_bytes(16, "big", signed=True)
    for number, raw in _lines(path, tell):
        drawn.read += 1
        try:
            if len(raw) > _LONGEST:
                raise ValueError("longer than 16 MiB")
            record = read(number, raw)
        except ValueError as exc:
            drawn.unreadable += 1
            if len(drawn.faults) < _TOLD:
                drawn.faults.append({"line": number, "why": str(exc)})
            continue
        if not record.everything.strip():
            drawn.empty += 1
            continue
        digest = int.from_bytes(blake2b(record.content, digest_size=8, key=key).digest(), "big")
        digests.append(digest)
        if digest in held or (len(chosen) == count and -digest < chosen[0][0]):
            continue
        held.add(digest)
        heapq.heappush(chosen, (-digest, number, record))
        if len(chosen) > count:
            held.discard(-heapq.heappop(chosen)[0])
    drawn.duplicates = len(digests) - _different(digests)
    drawn.records = [record for _, _, record in sorted(chosen, key=lambda each: -each[0])]
    _judge(path, drawn)
    return drawn


def _lines(path: str, tell: Tell) -> Iterator[tuple[int, bytes]]:
    try:
        size = Path(path).stat().st_size
        file = Path(path).open("rb")  # noqa: SIM115  # closed below, after errors of opening are told
    except OSError as exc:
        raise RefusedError(f"{path}: cannot be read ({exc.strerror}); give a file of JSON lines") from exc
    with file:
        _look_at_start(path, file.peek(64)[:64])
        told, number = 0, 0
        while raw := file.readline(_LONGEST + 1):
            number += 1
            rest = raw
            while rest and not rest.endswith(b"\n"):  # the rest of a line that is too long
                rest = file.readline(_LONGEST)
            if raw.strip():
                yield number, raw
            if (at := file.tell()) - told >= max(1 << 22, size // 100):
                told = at
                tell.progress("Read records (MB)", at >> 20, size >> 20)


def _look_at_start(path: str, start: bytes) -> None:
    if start.startswith(b"\x1f\x8b"):
        raise RefusedError(f"{path}: is compressed; unpack it first: gunzip -k {path}")
    if start.startswith(b"PAR1"):
        raise RefusedError(f"{path}: is a Parquet file; write it as JSON lines first")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        raise RefusedError(f"{path}: is a JSON array; one record a line is needed: jq -c '.[]' {path} > records.jsonl")


def _different(digests: "array[int]") -> int:
    import numpy as np

    return int(np.unique(np.frombuffer(digests, dtype=np.uint64)).size) if digests else 0


def _judge(path: str, drawn: Drawn) -> None:
    if drawn.unreadable * 100 > _SHARE * drawn.read:
        first = ", ".join(f"line {each['line']} ({each['why']})" for each in drawn.faults)
        raise RefusedError(
            f"{path}: {drawn.unreadable} of {drawn.read} lines cannot be read, more than {_SHARE} %: {first}; "
            f"each line must be one of {FORMS}"
        )
    if not drawn.records:
        raise RefusedError(f"{path}: has no records; each line must be one of {FORMS}")
