"""How what the doctor found is told, to people and to programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from launcher.doctor.problem import Finding, Severity
from launcher.doctor.problems import CHECKS
from launcher.doctor.sight import Sight

_COLOURS = {Severity.CRITICAL: "bold red", Severity.WARNING: "bold yellow"}
_MANY = 8
"""Places of one problem that people are shown."""
_UNJUDGED = (
    "not healthy yet: nothing wrong was found, but the proxy does not answer; `launcher status` says how far it is"
)


def is_healthy(findings: Sequence[Finding], sight: Sight) -> bool:
    """Nothing was found, and there was something to judge."""
    return not findings and sight.proxy is not None


def text(console: Console, findings: Sequence[Finding], sight: Sight) -> None:
    """Each problem with its cause, evidence and fix; then what was not seen, and how it stands."""
    for finding in sorted(findings, key=lambda each: each.problem.severity is not Severity.CRITICAL):
        _finding(console, finding)
    for reason in sight.not_seen:
        console.print(f"not seen: {_printable(reason)}", markup=False, soft_wrap=True)
    counts = [_counted(findings, severity) for severity in Severity]
    found = " and ".join(filter(None, counts)) or ("healthy" if sight.proxy else _UNJUDGED)
    judged = f"judged by what happened {sight.period}" if sight.proxy else "without the proxy's metrics"
    console.print(f"{found} ({len(CHECKS)} problems looked for, {judged})", markup=False, soft_wrap=True)


def as_json(findings: Sequence[Finding], sight: Sight) -> str:
    """``{"healthy": bool, "findings": [...], "not_seen": [...]}``, indented."""
    document = {
        "healthy": is_healthy(findings, sight),
        "judged": sight.period if sight.proxy else None,
        "looked_for": [check.problem.id for check in CHECKS],
        "findings": [
            {**asdict(each.problem), "evidence": [asdict(evidence) for evidence in each.evidence]} for each in findings
        ],
        "not_seen": list(sight.not_seen),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _finding(console: Console, finding: Finding) -> None:
    problem = finding.problem
    head = Text.assemble((problem.severity.value, _COLOURS[problem.severity]), f"  {problem.symptom}  ")
    console.print(head.append(f"({problem.id})", "dim"), soft_wrap=True)
    for evidence in finding.evidence[:_MANY]:
        _line(console, "seen", f"{evidence.where}: {evidence.text}")
    if len(finding.evidence) > _MANY:
        _line(console, "", f"and {len(finding.evidence) - _MANY} more")
    for title, told in {"cause": problem.cause, "look": problem.look_at, "fix": problem.fix}.items():
        _line(console, title, told.replace("`", ""))


def _line(console: Console, title: str, told: str) -> None:
    console.print(Text.assemble((f"    {title:6}", "dim"), _printable(told)), soft_wrap=True)


def _printable(told: str) -> str:
    """Names and texts of other programs give no orders to the terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in told)


def _counted(findings: Sequence[Finding], severity: Severity) -> str:
    number = sum(finding.problem.severity is severity for finding in findings)
    plural = "s" if severity is Severity.WARNING and number > 1 else ""
    return f"{number} {severity}{plural}" if number else ""
