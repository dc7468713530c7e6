"""Counts what is the case now, and with others that serve the same address, for all of them."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from proxy.admission import Admission
from proxy.overview.notes import PRESENT, Notes
from proxy.overview.present import engines
from proxy.overview.sample import Present, Sample
from proxy.overview.tally import LABELS, Tally, merged, read, tally, written
from proxy.pool import Pool

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two notes for the other processes."""


class Totals:
    """Of the metrics in a registry, a pool and its door; ``folder``: where processes leave notes for each other."""

    def __init__(
        self,
        registry: CollectorRegistry,
        flush: Callable[[], None],
        pool: Pool,
        door: Admission,
        patience: float,
        folder: Path | None,
    ) -> None:
        """``flush`` writes what was counted last; ``patience``: seconds after which an engine's words are too old."""
        self._flush = flush
        self._counters = registry.restricted_registry(LABELS)
        self._pool = pool
        self._door = door
        self._patience = patience
        self._counted = Notes(folder, "counted")
        self._present = Notes(folder, PRESENT)

    def sample(self) -> Sample:
        """Now; what others have noted is a second old at most."""
        return Sample(
            time.time(),
            time.monotonic(),
            merged([self._own_counts(), *(read(note) for note in self._counted.others())]),
            self.present(),
            engines(self._pool, self._patience),
        )

    def present(self) -> Present:
        """Of all processes."""
        own = self._own_present()
        everybody = [own, *(Present(*note) for note in self._present.others())]
        return Present(
            sum(each.admitted for each in everybody),
            sum(each.waiting for each in everybody),
            {name: sum((each.in_flight or {}).get(name, 0.0) for each in everybody) for name in own.in_flight or {}},
        )

    async def run(self) -> None:
        """Note it for the others until cancelled; where that cannot be written, the error is logged, once."""
        problem = ""
        while True:
            try:
                self._counted.write(written(self._own_counts()))
                own = self._own_present()
                self._present.write((own.admitted, own.waiting, own.in_flight))
                problem = ""
            except OSError as exc:
                if str(exc) != problem:
                    problem = str(exc)
                    logger.error("counts cannot be noted, trying again every %g s: %s", INTERVAL, problem)
            await asyncio.sleep(INTERVAL)

    def _own_counts(self) -> Tally:
        self._flush()
        return tally(self._counters.collect())

    def _own_present(self) -> Present:
        in_flight = {member.instance.name: float(member.in_flight) for member in self._pool.members}
        return Present(self._door.in_flight, self._door.waiting, in_flight)
