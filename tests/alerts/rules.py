"""The file of rules, and what promtool is told to try with them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from proxy.settings import Alerts

ROOT = Path(__file__).parents[2]
FILE = ROOT / "helm/files/alerts.yaml"
THRESHOLDS = {alert: value for alert, value in asdict(Alerts()).items() if value is not None}
HOME = {"job": "duet", "namespace": "serving", "instance": "proxy:8000"}
"""Labels that a scrape adds."""
_LENGTH = 160
"""Samples, one in 15 s."""


def groups() -> list[dict[str, Any]]:
    """As they are in the file."""
    return yaml.safe_load(FILE.read_text())["groups"]


def rules(kind: str) -> Iterator[dict[str, Any]]:
    """All of a kind, ``alert`` or ``record``."""
    return (rule for group in groups() for rule in group["rules"] if kind in rule)


@dataclass(frozen=True)
class Fires:
    """An alert that fires, by all that it says."""

    labels: Mapping[str, str]
    """Besides job and namespace."""
    summary: str
    description: str
    severity: str = "warning"


@dataclass(frozen=True)
class Case:
    """What a deployment shows, and whether an alert fires then."""

    title: str
    series: Mapping[str, str]
    """Samples in promtool's notation, one in 15 s, by name and labels without those of :data:`HOME`."""
    at: str
    fires: tuple[Fires, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """In place of the defaults."""
    up: str = f"1x{_LENGTH}"
    """The scrape's."""

    def shown(self, home: Mapping[str, str]) -> dict[str, str]:
        """All series of it, in a deployment with these labels; those that a series has itself stay."""
        thresholds = {**THRESHOLDS, **self.thresholds}
        series = {
            "up": self.up,
            **{f'duet_alert_threshold{{alert="{alert}"}}': f"{value}x{_LENGTH}" for alert, value in thresholds.items()},
            **self.series,
        }
        return {_at(home, name): values for name, values in series.items()}


def _at(home: Mapping[str, str], series: str) -> str:
    name, _, labels = series.rstrip("}").partition("{")
    own = set(re.findall(r"(\w+)=", labels))
    added = [f'{label}="{value}"' for label, value in home.items() if label not in own]
    return f"{name}{{{','.join([*filter(None, [labels]), *added])}}}"


def as_promtool(
    alert: str, case: Case, home: Mapping[str, str] = HOME, beside: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A test of promtool; with a deployment ``beside`` it at :data:`HOME`."""
    series = case.shown(home)
    if beside is not None:
        series |= Case("", beside, "0m").shown(HOME)
    runbook = next(rule for rule in rules("alert") if rule["alert"] == alert)["annotations"]["runbook"]
    where = {label: value for label, value in home.items() if label != "instance"}
    expected = [
        {
            "exp_labels": {"severity": each.severity, **where, **each.labels},
            "exp_annotations": {"summary": each.summary, "description": each.description, "runbook": runbook},
        }
        for each in case.fires
    ]
    return _test(case.title, series, [{"eval_time": case.at, "alertname": alert, "exp_alerts": expected}])


def quiet(alerts: Sequence[str], case: Case) -> dict[str, Any]:
    """A test that none of them fires in the first 30 minutes."""
    times = [f"{minutes}m" for minutes in range(1, 31)]
    looks = [{"eval_time": at, "alertname": alert, "exp_alerts": []} for at in times for alert in alerts]
    return _test(case.title, case.shown(HOME), looks)


def _test(name: str, series: Mapping[str, str], looks: list[dict[str, Any]]) -> dict[str, Any]:
    shown = [{"series": each, "values": values} for each, values in series.items()]
    return {"name": name, "interval": "15s", "input_series": shown, "alert_rule_test": looks}
