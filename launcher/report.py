"""How what preflight found is printed, for people and for programs."""

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from launcher.errors import ProfileError
from launcher.preflight.examine import Report
from launcher.preflight.finding import Finding, Severity

_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}


def text(console: Console, name: str, report: Report) -> None:
    """Each finding with its key, reason and fix; then what was not judged, and how it stands."""
    for finding in report.findings:
        _finding(console, finding)
    for reason in report.not_judged:
        console.print(f"not judged: {reason}", markup=False, soft_wrap=True)
    counts = [_counted(report, severity) for severity in Severity]
    asked = f" (rules asked: {', '.join(report.layers)})" if report.layers else ""
    console.print(
        f"{name}: {' and '.join(filter(None, counts)) or 'nothing found'}{asked}", markup=False, soft_wrap=True
    )


def as_json(reports: Mapping[str, Report | ProfileError]) -> str:
    """``{profile: {"findings": [...], "not_judged": [...], "ok": bool}}``, indented."""
    return json.dumps({name: _object(report) for name, report in reports.items()}, indent=2)


def _finding(console: Console, finding: Finding) -> None:
    fault = finding.fault
    head = Text.assemble((fault.severity.value, _COLOURS[fault.severity]), f"  {fault.key}")
    head.append(f"  ({finding.place})" if finding.place else "", "dim")
    console.print(head, soft_wrap=True)
    lines = {"what": fault.what, "why": fault.why, "fix": fault.fix, "rule": f"{finding.rule} ({finding.source})"}
    for title, line in lines.items():
        if line:
            console.print(Text.assemble((f"    {title:5}", "dim"), line), soft_wrap=True)


def _counted(report: Report, severity: Severity) -> str:
    number = sum(finding.fault.severity is severity for finding in report.findings)
    return f"{number} {severity}{'' if number == 1 else 's'}" if number else ""


def _object(report: Report | ProfileError) -> dict[str, Any]:
    if isinstance(report, ProfileError):
        faults = [{"rule": "profile/valid", "severity": "error", "what": message} for message in report.messages]
        return {"ok": False, "findings": faults, "not_judged": ["nothing else: the profile is faulty"]}
    return {
        "ok": not report.has_errors,
        "findings": [
            {
                "rule": finding.rule,
                "layer": finding.layer.value,
                "severity": finding.fault.severity.value,
                "key": finding.fault.key,
                "place": finding.place,
                "what": finding.fault.what,
                "why": finding.fault.why,
                "fix": finding.fault.fix,
                "values": dict(finding.fault.values),
                "source": finding.source,
            }
            for finding in report.findings
        ],
        "layers": [layer.value for layer in report.layers],
        "not_judged": list(report.not_judged),
    }
