"""What ``/metrics`` answers: of one process, or the sums of several that share a folder.

Counters and histograms of several processes lie in files that prometheus_client keeps there, one per process, exact to
the last request and also of processes that have ended. Nothing can be taken out of these files: samples of instances
that are no longer configured are left out of the answer. Gauges are the present of those that live: each process writes
them down every second, and whoever is asked adds them up.
"""

import asyncio
import json
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from proxy.instruments import ALL, INSTANCES

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two notes of the gauges."""
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Tells prometheus_client, when it is imported, that processes share a folder."""
_Told = list[tuple[str, str, list[tuple[dict[str, str], float]]]]
"""Name, meaning and samples of each gauge."""
_MERGE = {instrument.name: instrument.merge for instrument in ALL}


class Exposition:
    """The metrics of a registry, and with a ``folder`` those of all processes that share it."""

    def __init__(
        self,
        registry: CollectorRegistry,
        folder: Path | None,
        instances: Callable[[], Collection[str]],
        flush: Callable[[], None],
    ) -> None:
        """``instances``: the names of those that are configured now; ``flush`` writes what was counted last."""
        self._registry = registry
        self._folder = folder
        self._flush = flush
        self._all = registry
        if folder is not None:
            self._all = CollectorRegistry()
            MultiProcessCollector(self._all, str(folder))  # type: ignore[no-untyped-call]
            self._all.register(_Gauges(folder, self._own_gauges))
        self._shown = _Present(self._all, instances)

    def text(self, accept: str) -> tuple[bytes, str]:
        """As a header ``Accept`` wants it, and the type of that: Prometheus's own format, or OpenMetrics.

        Only OpenMetrics has exemplars, which only one process has: files keep none.
        """
        self._flush()
        encode, kind = choose_encoder(accept)
        return encode(self._shown), kind

    async def run(self) -> None:
        """Note the gauges until cancelled; where they cannot be written, the error is logged, once."""
        problem = ""
        while True:
            try:
                self._note_gauges()
                problem = ""
            except OSError as exc:
                if str(exc) != problem:
                    problem = str(exc)
                    logger.error("gauges for /metrics cannot be noted, trying again every %g s: %s", INTERVAL, problem)
            await asyncio.sleep(INTERVAL)

    def _note_gauges(self) -> None:
        if self._folder is None:
            return
        note = _note(self._folder, os.getpid())
        new = note.with_suffix(".new")
        new.write_text(json.dumps(self._own_gauges()))
        new.replace(note)

    def _own_gauges(self) -> _Told:
        return [
            (metric.name, metric.documentation, [(sample.labels, sample.value) for sample in metric.samples])
            for metric in self._registry.collect()
            if metric.type == "gauge"
        ]


class _Present(Collector):
    """Without what tells of instances that are gone, and without the times at which counters were made."""

    def __init__(self, registry: CollectorRegistry, instances: Callable[[], Collection[str]]) -> None:
        self._registry = registry
        self._instances = instances

    def collect(self) -> Iterator[Metric]:
        """All families; some may be empty."""
        present = self._instances()
        for metric in self._registry.collect():
            family = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            family.samples = [
                sample
                for sample in metric.samples
                if not sample.name.endswith("_created")
                and all(value in present for label, value in sample.labels.items() if label in INSTANCES)
            ]
            yield family


class _Gauges(Collector):
    """Those of this process and the notes of all others that live, merged."""

    def __init__(self, folder: Path, own: Callable[[], _Told]) -> None:
        self._folder = folder
        self._own = own

    def collect(self) -> Iterator[Metric]:
        """One sample for each set of labels."""
        helps: dict[str, str] = {}
        values: dict[str, dict[tuple[tuple[str, str], ...], list[float]]] = defaultdict(lambda: defaultdict(list))
        for gauges in [self._own(), *self._others()]:
            for name, text, samples in gauges:
                helps[name] = text
                for labels, value in samples:
                    values[name][tuple(labels.items())].append(value)
        for name, text in helps.items():
            merge = _MERGE[name].of
            names = [label for label, _ in next(iter(values[name]), ())]
            family = GaugeMetricFamily(name, text, labels=names)
            for key, found in values[name].items():
                family.add_metric([value for _, value in key], merge(found))
            yield family

    def _others(self) -> Iterator[_Told]:
        own = _note(self._folder, os.getpid())
        for note in self._folder.glob("gauges_*.json"):
            if note == own:
                continue
            try:
                yield json.loads(note.read_bytes())
            except FileNotFoundError:  # its process has ended this moment
                continue


def forget(folder: Path, pid: int) -> None:
    """A process has ended: its gauges are of the past, its counters stay."""
    _note(folder, pid).unlink(missing_ok=True)


def _note(folder: Path, pid: int) -> Path:
    return folder / f"gauges_{pid}.json"
