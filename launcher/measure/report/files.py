"""Writes a measurement's report."""

import os
from pathlib import Path

from launcher import page
from launcher.errors import MeasureError
from launcher.measure.bench_shape import Benched
from launcher.measure.report.document import document
from launcher.measure.report.told import told
from launcher.plain import to_json


def check(folder: Path) -> None:
    """Raises :class:`MeasureError` when no report can come there: before anything is measured in vain."""
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(each))
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "cannot be written" if there.is_dir() else "is no folder"
        raise MeasureError(f"cannot write the report to {folder}: {there} {why}; choose another with --out")


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
