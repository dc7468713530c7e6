"""Decision: what the page says, and a comparison as JSON and back."""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from launcher import page
from launcher.errors import MeasureError
from launcher.measure.bench_shape import Sent
from launcher.measure.compare_asked import VERSION, Asked, Compared
from launcher.measure.compare_report import plots, rows
from launcher.measure.compare_shape import Verdict
from launcher.measure.report.amounts import load
from launcher.measure.workload import Workload
from launcher.measure.workload_file import Work
from launcher.plain import to_json

_TONES = {Verdict.BETTER: "pass", Verdict.WORSE: "fail"}
_ASKED, _SENT = TypeAdapter(Asked), TypeAdapter(Sent)


def html(of: Compared) -> str:
    """Needs the extra ``measure``."""
    return page.render("launcher.measure.compare_report", "page.html.j2", _values(of))


def document(of: Compared) -> str:
    """As JSON, with all that is needed to measure again."""
    return to_json(of)


def again(text: bytes, file: str) -> tuple[Asked, Work]:
    """Raises :class:`MeasureError` when it is no report of `compare`."""
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise MeasureError(f"{file} is a report of version {data['version']}, this Duet reads {VERSION}")
        sent = _SENT.validate_python(data["sent"])
        workload = Workload.model_validate_json(json.dumps(sent.workload))
        return _ASKED.validate_python(data["asked"]), Work(sent.name, workload, sent.recorded)
    except (KeyError, TypeError, ValueError, ValidationError) as exc:
        raise MeasureError(f"{file} is no report.json of `launcher compare` ({type(exc).__name__})") from exc


def _values(of: Compared) -> dict[str, Any]:
    facts: list[tuple[str, object]] = [
        ("workload", of.sent.name),
        ("seed", of.asked.seed),
        ("load", load(of.asked.load)),
    ]
    for side, told in of.conditions.items():
        versions = ", ".join(f"{name} {version}" for name, version in sorted(told.versions.items()))
        facts += [(f"versions of {side.upper()}", versions), (f"command of {side.upper()}", told.command)]
        facts += [(f"machine of {side.upper()}", ", ".join([told.processor, f"{told.cores} cores", *told.gpus]))]
    return {
        "compared": of,
        "tone": _TONES.get(of.comparison.verdict, "inconclusive"),
        "plot": plots.effects(of),
        "effects": rows.effects(of),
        "effect_columns": rows.EFFECT_COLUMNS,
        "blocks": rows.blocks(of),
        "block_columns": rows.BLOCK_COLUMNS,
        "facts": facts,
    }
