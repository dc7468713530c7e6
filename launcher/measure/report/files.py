"""Writes a measurement's report."""

from pathlib import Path

from launcher import page
from launcher.errors import MeasureError
from launcher.measure.bench_shape import Benched
from launcher.measure.report.document import document
from launcher.measure.report.told import told
from launcher.plain import to_json


def write(benched: Benched, folder: Path) -> None:
    """``report.html``, ``report.json`` and ``samples.jsonl``; raises :class:`MeasureError` when that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(document(benched), "utf-8")
        (folder / "samples.jsonl").write_text("".join(to_json(each, None) for each in benched.samples), "utf-8")
        (folder / "report.html").write_text(
            page.render("launcher.measure.report", "page.html.j2", told(benched)), "utf-8"
        )
    except OSError as exc:
        raise MeasureError(f"cannot write the report to {folder}: {exc.strerror}; choose another with --out") from exc
