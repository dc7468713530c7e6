"""Decision: a tuning as one HTML page that needs nothing else."""

from collections.abc import Mapping
from typing import Any

from launcher import page
from launcher.speculation.evidence import Evidence
from launcher.speculation.report import plots, rows


def render(evidence: Evidence, context: Mapping[str, Any]) -> str:
    """``context``: as it stands in the evidence's file. Needs the extra ``measure``."""
    conditions = context.get("conditions") or {}
    facts = [
        ("command", conditions.get("command", "")),
        ("started", conditions.get("started", "")),
        ("seed", context["asked"]["seed"]),
        ("seconds for each load of each start", context["asked"]["seconds"]),
        ("workload", context["sent"]["name"]),
        ("objectives", _objectives(context["objectives"])),
        ("system", conditions.get("system", "")),
        ("processor", f"{conditions.get('processor', '')}, {conditions.get('cores', '?')} cores"),
        ("GPUs", ", ".join(conditions.get("gpus", ())) or "none"),
        *sorted(conditions.get("versions", {}).items()),
    ]
    return page.render(
        "launcher.speculation.report",
        "page.html.j2",
        {
            "evidence": evidence,
            "tone": "pass" if evidence.k else "inconclusive",
            "title": "Speculate" if evidence.k else "Do not speculate",
            "schedule": rows.schedule(evidence),
            "plots": plots.goodput(evidence),
            "choices": rows.choices(evidence),
            "choice_columns": rows.CHOICE_COLUMNS,
            "points": rows.points(evidence),
            "point_columns": rows.POINT_COLUMNS,
            "notes": context.get("notes", ()),
            "others": context.get("others", 0.0),
            "facts": facts,
        },
    )


def _objectives(of: Mapping[str, float | None]) -> str:
    said = [f"{name.upper()} {value:g} s" for name, value in of.items() if value is not None]
    return ", ".join(said) or "none in the profile: goodput is the throughput of complete answers"
