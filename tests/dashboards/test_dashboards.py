"""Dashboards: made by code, whole, readable by Grafana's own types, and naming only what there is."""

import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.alerts.rules import ROOT
from tests.alerts.shown import unknown
from tests.dashboards.asked import plain
from tests.dashboards.build import FOLDER, PAGES, text
from tests.dashboards.parts import Page
from tests.programs import needs

PROBLEMS = {
    rule["annotations"]["runbook"].partition("#")[2]
    for group in yaml.safe_load((ROOT / "helm/files/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
each = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])


def panels(document: dict) -> list[dict]:
    """All, those of closed rows too."""
    return [panel for top in document["panels"] for panel in (top, *(top.get("panels") or []))]


def test_the_folder_holds_these_and_no_others():
    assert {file.name for file in FOLDER.iterdir()} == {f"{page.name}.json" for page in PAGES}


@each
def test_its_file_is_what_the_code_makes(page: Page):
    assert (FOLDER / f"{page.name}.json").read_text() == text(page), "run scripts/dashboards"


@each
def test_grafana_s_own_types_read_it_and_lose_nothing(page: Page):
    document = json.loads(text(page))
    assert json.loads(json.dumps(Dashboard.from_json(document), default=lambda value: value.to_json())) == document


@each
def test_its_panels_have_numbers_of_their_own_and_do_not_overlap(page: Page):
    shown = panels(json.loads(text(page)))
    assert len({panel["id"] for panel in shown}) == len(shown)
    taken = set()
    for panel in shown:
        at = panel["gridPos"]
        cells = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert panel["type"] == "row" or panel["options"], panel["title"]
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells


@each
def test_its_data_come_from_where_the_reader_chooses(page: Page):
    document = json.loads(text(page))
    sources = set(re.findall(r'"uid": "([^"]*)"', text(page))) - {document["uid"]}
    assert sources == {"${datasource}"}
    assert [variable["name"] for variable in document["templating"]["list"]][:3] == ["datasource", "job", "namespace"]


@each
def test_each_panel_says_what_it_shows_and_leads_to_problems_that_there_are(page: Page):
    for panel in page.panels:
        assert panel.good.endswith("."), panel.title
        assert set(panel.runbook) <= PROBLEMS, panel.title


@each
def test_its_queries_name_metrics_and_labels_that_there_are(page: Page):
    assert {
        panel.title: wrong for panel in page.panels for query in panel.asked if (wrong := unknown(query.expr))
    } == {}


@each
@needs("promtool", "prometheus")
def test_prometheus_understands_its_queries(page: Page, tmp_path: Path):
    recorded = [
        {"record": f"panel_{number}", "expr": plain(query.expr)}
        for number, query in enumerate(query for panel in page.panels for query in panel.asked)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
    done = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
