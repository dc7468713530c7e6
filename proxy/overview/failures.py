"""The last requests that went wrong. Neither prompts nor keys are in it."""

import asyncio
import logging
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

from proxy.overview.notes import Notes
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
        self._notes = Notes(folder, "failures")
        self._own: deque[Failure] = deque(maxlen=KEPT)
        self._is_noted = True

    def add(self, failure: Failure) -> None:
        """Of this process."""
        self._own.append(failure)
        self._is_noted = False

    def latest(self) -> list[dict[str, object]]:
        """The newest first."""
        found = [asdict(failure) for failure in self._own]
        for note in self._notes.others():
            found += note
        return sorted(found, key=_time, reverse=True)[:KEPT]

    async def run(self) -> None:
        """Note them for the others until cancelled."""
        while True:
            if not self._is_noted:
                try:
                    self._notes.write([asdict(failure) for failure in self._own])
                    self._is_noted = True
                except OSError as exc:
                    logger.debug("failures cannot be noted for other workers: %s", exc)  # counts have the same trouble
            await asyncio.sleep(INTERVAL)


def _time(failure: dict[str, object]) -> float:
    at = failure["at"]
    return at if isinstance(at, float) else 0.0
