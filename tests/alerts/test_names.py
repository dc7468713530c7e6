"""Rules name what there is: metrics, labels, thresholds, places in the runbook."""

import re
from dataclasses import fields

import pytest

from launcher.doctor.problems import CHECKS
from proxy.settings import Alerts
from tests.alerts.rules import ROOT, rules
from tests.alerts.shown import unknown

RUNBOOK = ROOT / "docs/runbook.md"
RULES = list(rules("alert")) + list(rules("record"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_names_metrics_and_labels_that_a_proxy_shows(rule):
    assert unknown(rule["expr"]) == set()


def test_what_does_not_exist_is_found_out():
    assert unknown('sum by (engin) (rate(duet_engine_up{rolle="x"}[5m])) / duet_engine_ups') == {
        "(engin)",
        "duet_engine_up{rolle}",
        "duet_engine_ups",
    }


def test_each_threshold_is_used_by_a_rule_and_each_that_is_used_can_be_set():
    used = {
        threshold
        for rule in rules("alert")
        for threshold in re.findall(r'duet_alert_threshold\{alert="(\w+)"\}', rule["expr"])
    }
    assert used == {field.name for field in fields(Alerts)}


@pytest.mark.parametrize("rule", list(rules("alert")), ids=lambda rule: rule["alert"])
def test_an_alert_tells_the_threshold_that_it_compares_with(rule):
    compared = set(re.findall(r'duet_alert_threshold\{alert="(\w+)"\}', rule["expr"]))
    told = set(re.findall(r"duet_alert_threshold\{alert='(\w+)'", rule["annotations"]["description"]))
    assert told == compared


@pytest.mark.parametrize("rule", list(rules("alert")), ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_a_place_in_the_runbook(rule):
    file, _, problem = rule["annotations"]["runbook"].partition("#")
    words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z][a-z]+|[A-Z]+", rule["alert"].removeprefix("Duet"))
    assert (file, problem) == ("docs/runbook.md", "-".join(words).lower())
    headings = re.findall(r"^#+ (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert problem in {heading.strip("` ").lower().replace(" ", "-") for heading in headings}


def test_an_alert_is_as_bad_as_the_problem_that_the_doctor_tells_of():
    alerts = {rule["alert"]: [] for rule in rules("alert")}
    for rule in rules("alert"):
        alerts[rule["alert"]].append(rule["labels"]["severity"])
    told = {check.problem.alert: check.problem.severity for check in CHECKS if check.problem.alert}
    assert told == {alert: min(severities) for alert, severities in alerts.items()}  # "critical" before "warning"


def test_each_alert_is_in_the_documents_table_with_its_delay_and_severity():
    rows = re.findall(
        r"^\| `(Duet\w+)` \| .+ \| (.+) \| (.+) \|$", (ROOT / "docs/monitoring.md").read_text(), re.MULTILINE
    )
    told: dict[str, tuple[str, str]] = {}
    for rule in rules("alert"):
        before = told.get(rule["alert"])
        now = (rule.get("for", "0s"), rule["labels"]["severity"])
        told[rule["alert"]] = now if before is None else (f"{before[0]}, {now[0]}", f"{before[1]}, {now[1]}")
    assert rows == [(alert, *row) for alert, row in told.items()]
