"""Contract decision: the samples of interest in what an engine of any supported version tells, by today's names."""

import math
from collections.abc import Collection

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from proxy.engine_instruments import OLDER


def samples(text: str, wanted: Collection[str]) -> list[Sample]:
    """Those with these names; one that an engine shows under an older name too is there once.

    Values that are no finite numbers are left out: nothing can be counted, averaged or told in JSON with them.

    Raises :class:`ValueError` when the text is not in Prometheus's format.
    """
    names = (*wanted, *(older for older, today in OLDER.items() if today in wanted))
    lines = "\n".join(line for line in text.splitlines() if line.startswith(names))
    told = (sample for family in text_string_to_metric_families(lines + "\n") for sample in family.samples)
    found = [sample for sample in told if math.isfinite(sample.value)]
    current = [sample for sample in found if sample.name in wanted and sample.name not in OLDER]
    present = {sample.name for sample in current}
    older = [sample._replace(name=OLDER[sample.name]) for sample in found if OLDER.get(sample.name) in wanted]
    return current + [sample for sample in older if sample.name not in present]
