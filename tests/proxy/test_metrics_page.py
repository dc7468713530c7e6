"""``docs/metrics.md`` is written down from the metrics themselves."""

import os
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from proxy.cli import main
from proxy.instruments import ALL, GROUPS, LABELS
from proxy.metrics_page import page
from proxy.settings import Policy, Selection, Settings

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_made_of_them():
    """After a change: ``DUET_UPDATE_GOLDEN=1 python -m pytest tests/proxy/test_metrics_page.py``."""
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


def test_the_program_prints_it(capsys):
    assert main(["--metrics"]) == 0
    assert capsys.readouterr().out == page()


def test_every_metric_and_every_label_has_a_meaning():
    assert all(each.meaning.endswith(".") and each.unit for each in ALL)
    assert {label for each in ALL for label in each.labels} == LABELS.keys()


async def test_a_proxy_shows_these_metrics_and_no_others(start):
    duet = await start(settings=Settings(selection=Selection(prefill=Policy.TTFT)))
    families = text_string_to_metric_families((await duet.client.get("/metrics")).text)
    shown = {family.name: (family.type, family.documentation) for family in families}
    assert shown == {each.name: (each.kind, each.meaning) for each in ALL if each not in GROUPS["Cluster"]}
