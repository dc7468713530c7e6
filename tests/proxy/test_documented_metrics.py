"""What README.md and docs/ say of metrics is what a proxy shows."""

import re
from pathlib import Path

from launcher.operate.speculation.metrics import ALL as OF_CONTROLLERS
from launcher.quantize.exposition import METRICS
from proxy.engine_instruments import MADE, TOLD
from proxy.instruments import GROUPS
from proxy.settings import Policy, Selection, Settings

ROOT = Path(__file__).parents[2]


async def test_each_metric_that_is_documented_is_explained_by_the_proxy(start):
    duet = await start(settings=Settings(selection=Selection(prefill=Policy.TTFT)))
    explained = set(re.findall(r"^# HELP (\S+) \S+", (await duet.client.get("/metrics")).text, re.MULTILINE))
    explained |= {each.shown for each in GROUPS["Cluster"]}  # of a proxy with discovery
    explained |= METRICS.keys()  # of a file that `launcher quantize check` writes
    explained |= {each.shown for each in OF_CONTROLLERS}  # of `launcher operate speculation --metrics-port`
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    explained |= {name for told in TOLD for name in (told.shown.shown, *told.samples.values())} | {m.name for m in MADE}
    documented = {name for document in documents for name in re.findall(r"\bduet_[a-z_]+", document.read_text())}
    assert documented
    assert documented - explained == set()
