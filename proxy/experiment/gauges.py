"""The split in force, as metrics."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy import instruments as known
from proxy.splitter import Splitter


class SplitGauges(Collector):
    """Those of one process."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter

    def collect(self) -> Iterator[Metric]:
        """Both, as they are now."""
        split = self._splitter.split
        share = GaugeMetricFamily(known.ARM_SHARE.name, known.ARM_SHARE.meaning, labels=known.ARM_SHARE.labels)
        for arm, percent in self._splitter.shares.items():
            share.add_metric([arm], percent / 100)
        yield share
        ended = GaugeMetricFamily(known.EXPERIMENT_ENDED.name, known.EXPERIMENT_ENDED.meaning)
        if split is not None and split.experiment is not None:
            ended.add_metric([], self._splitter.ended)
        yield ended
