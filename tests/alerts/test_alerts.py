"""Every alert fires when its trouble is there, and not when it nearly is, by promtool."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts import engines, healthy, pairs, requests, speculation
from tests.alerts.prometheus import documented
from tests.alerts.rules import FILE, HOME, ROOT, Case, as_promtool, groups, quiet, rules
from tests.programs import needs

CASES = {**requests.CASES, **pairs.CASES, **engines.CASES, **speculation.CASES}
ALERTS = sorted({rule["alert"] for rule in rules("alert")})
SEVERITIES = {"critical", "warning"}
needs_promtool = needs("promtool", "prometheus")


def promtool(*arguments: str) -> None:
    """Run it; what it says, if it finds faults."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def passes(folder: Path, chosen: list[dict[str, Any]], tests: list[dict[str, Any]]) -> None:
    """Have promtool try these groups of rules."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": chosen}))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "15s", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(document, width=1000))
    promtool("test", "rules", str(folder / "tests.yaml"))


def group_of(alert: str) -> list[dict[str, Any]]:
    """The group of an alert, which has all rules that it needs."""
    return [group for group in groups() if any(rule.get("alert") == alert for rule in group["rules"])]


@needs_promtool
def test_the_file_of_rules_has_no_faults():
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(FILE))


@needs_promtool
def test_the_documented_configuration_has_no_faults(tmp_path: Path):
    (tmp_path / "helm").symlink_to(ROOT / "helm")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(documented()))
    promtool("check", "config", str(tmp_path / "prometheus.yml"))


def test_every_alert_is_shown_to_fire_and_shown_not_to():
    assert sorted(CASES) == ALERTS
    for alert, cases in CASES.items():
        assert {bool(case.fires) for case in cases} == {True, False}, alert
        assert len({case.title for case in cases}) == len(cases), alert
        fired = {each.severity for case in cases for each in case.fires}
        assert fired == {rule["labels"]["severity"] for rule in rules("alert") if rule["alert"] == alert} <= SEVERITIES


@needs_promtool
@pytest.mark.parametrize("alert", ALERTS)
def test_it_fires_when_its_trouble_is_there_and_not_when_it_nearly_is(tmp_path: Path, alert: str):
    passes(tmp_path, group_of(alert), [as_promtool(alert, case) for case in CASES[alert]])


@needs_promtool
@pytest.mark.parametrize("alert", ALERTS)
def test_it_is_of_the_deployment_whose_trouble_it_is(tmp_path: Path, alert: str):
    """In a namespace of its own beside one that works, and where there are no namespaces."""
    case = next(case for case in CASES[alert] if case.fires)
    homes = [{**HOME, "namespace": "other"}, {"job": HOME["job"], "instance": HOME["instance"]}]
    passes(tmp_path, group_of(alert), [as_promtool(alert, case, home, healthy.BUSY) for home in homes])


@needs_promtool
@pytest.mark.parametrize(
    ("series", "up"),
    [
        pytest.param(healthy.BUSY, "1x160", id="while all works"),
        pytest.param(healthy.IDLE, "1x160", id="without traffic"),
        pytest.param(healthy.STARTED_ANEW, "1x40 0x4 1x100", id="when the proxy is started anew"),
        pytest.param(healthy.SCRAPED_LATE, "_x40 1x100", id="when Prometheus comes late"),
    ],
)
def test_nothing_fires(tmp_path: Path, series: Mapping[str, str], up: str):
    case = Case("quiet", series, "30m", up=up)
    passes(tmp_path, groups(), [quiet(ALERTS, case)])
