"""The last requests that went wrong. Neither prompts nor keys are in it."""

import asyncio
import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from proxy.record import Outcome, Record

logger = logging.getLogger(__name__)

KEPT = 50
INTERVAL = 1.0
"""Seconds between two notes for the other processes."""
_REASON = 300
"""The most letters of a reason."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that got no whole answer."""

    at: float
    """Seconds since the epoch."""
    request_id: str
    """As it is in the logs."""
    endpoint: str
    status: int
    """The client was told; 200 for an answer that broke off."""
    outcome: str
    path: str | None
    bypass: str | None
    prefill: str | None
    decode: str | None
    reason: str


def failure_of(record: Record, status: int, outcome: Outcome) -> Failure:
    """What is told of a request that has ended now."""
    reason = record.reason or record.failure or f"the engine answered {status}"
    shown = "".join(letter if letter.isprintable() else " " for letter in reason[:_REASON])
    told = (record.path, record.bypass, record.prefill, record.decode)
    return Failure(time.time(), record.id.internal, record.endpoint, status, outcome, *told, reason=shown)


class Failures:
    """Those of this process, and with a ``folder`` those of all that share it, also of those that have ended."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._own: deque[Failure] = deque(maxlen=KEPT)
        self._is_noted = True

    def add(self, failure: Failure) -> None:
        """Of this process."""
        self._own.append(failure)
        self._is_noted = False

    def latest(self) -> list[dict[str, object]]:
        """The newest first."""
        found = [*(asdict(failure) for failure in self._own), *self._noted()]
        return sorted(found, key=_time, reverse=True)[:KEPT]

    async def run(self) -> None:
        """Note them for the others until cancelled."""
        while True:
            try:
                self._note()
            except OSError as exc:
                logger.debug("failures cannot be noted for other workers: %s", exc)  # gauges have the same trouble
            await asyncio.sleep(INTERVAL)

    def _note(self) -> None:
        if self._folder is None or self._is_noted:
            return
        note = self._note_of(self._folder, os.getpid())
        new = note.with_suffix(".new")
        new.write_text(json.dumps([asdict(failure) for failure in self._own]))
        new.replace(note)
        self._is_noted = True

    def _noted(self) -> Iterator[dict[str, object]]:
        if self._folder is None:
            return
        own = self._note_of(self._folder, os.getpid())
        for note in self._folder.glob("failures_*.json"):
            if note != own:
                yield from json.loads(note.read_bytes())

    @staticmethod
    def _note_of(folder: Path, pid: int) -> Path:
        return folder / f"failures_{pid}.json"


def _time(failure: dict[str, object]) -> float:
    at = failure["at"]
    return at if isinstance(at, float) else 0.0
