"""The work of ``launcher quantize check``: is production still what a checkpoint was calibrated for?"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.errors import QuantizeError
from launcher.quantize import checked, drift, exposition
from launcher.quantize.drift import Drift, Level
from launcher.quantize.gate.shape import Judgement, Verdict
from launcher.quantize.manifest import FOLDER

RECORDS = 512
"""Live ones that are looked at."""

Counted = Mapping[str, Any]
"""Result of the worker's step ``count``."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found."""

    level: Level
    reasons: tuple[str, ...]
    """The worst first."""
    drift: Drift
    judgement: Judgement | None
    """Of both models on live records, where they were served."""
    facts: Mapping[str, Any]
    """Of the live records."""
    notes: tuple[str, ...] = ()
    """What could not be done besides."""


def check(
    folder: Path,
    live: Path,
    *,
    count: Callable[[Mapping[str, Any]], Counted],
    judge: Callable[[Sequence[Mapping[str, Any]]], Judgement] | None = None,
    metrics_file: Path | None = None,
    seed: int = 0,
) -> Checked:
    """Compare live records with the calibration of a published checkpoint.

    ``count`` runs a job of the worker; ``judge`` serves both models and compares them on held-out live records. Raises
    :class:`QuantizeError` when the folder is no such checkpoint, or when the file of metrics cannot be written.
    """
    calibration = _calibration(folder)
    job = {"model": str(folder.absolute()), "live": str(live.absolute()), "max_tokens": calibration["max_tokens"]}
    counted = count({"step": "count", "records": RECORDS, "seed": seed, **job})
    found = drift.judge(calibration, counted["distribution"], seed)
    judgement = judge(counted["held_out"]) if judge is not None else None
    level, reasons = _together(found, judgement)
    now, notes = time.time(), list[str]()
    try:
        checked.keep(folder, checked.Kept(level, reasons, now))
    except OSError as exc:
        notes.append(
            f"{exc.filename}: cannot be written ({exc.strerror}): `launcher doctor` will not know of this check"
        )
    if metrics_file is not None:
        _write(metrics_file, folder.absolute().name, found, judgement, now)
    return Checked(level, reasons, found, judgement, counted["facts"], tuple(notes))


def _together(found: Drift, judgement: Judgement | None) -> tuple[Level, tuple[str, ...]]:
    """What was measured of the answers counts more than what was seen of the prompts."""
    if judgement is None or judgement.verdict is Verdict.INCONCLUSIVE:
        return found.level, (*found.reasons, *(judgement.reasons if judgement else ()))
    if judgement.verdict is Verdict.FAIL:
        return Level.ALERT, (*judgement.reasons, *found.reasons)
    still = "On live records the quantized model is still as good as the original."
    return min(found.level, Level.WARNING), (still, *found.reasons)


def _calibration(folder: Path) -> dict[str, Any]:
    file = folder / FOLDER / "calibration.json"
    try:
        told: dict[str, Any] = json.loads(file.read_text())
        missing = {"counts", "lengths", "records", "max_tokens", "overdispersion", "p99"} - told.keys()
    except OSError as exc:
        raise QuantizeError(
            f"{file}: cannot be read ({exc.strerror}): give a folder that `launcher quantize` has published; of others "
            f"it is not known what they were calibrated with"
        ) from exc
    except (ValueError, AttributeError) as exc:
        raise QuantizeError(f"{file}: is damaged ({exc}): quantize again") from exc
    if not missing and not _is_sound(told):
        raise QuantizeError(f"{file}: is damaged (its numbers are none): quantize again")
    if missing:
        raise QuantizeError(f"{file}: has no {', '.join(sorted(missing))}: it is of another version; quantize again")
    return told


def _is_sound(told: Mapping[str, Any]) -> bool:
    """Whether all that it says are numbers."""
    rows = told["counts"], told["lengths"]
    if not all(isinstance(row, dict) and row for row in rows):
        return False
    single = [told[name] for name in ("records", "max_tokens", "overdispersion", "p99")]
    named = all(name.isdigit() for row in rows for name in row)
    return named and all(
        isinstance(each, int | float) for each in [*single, *(each for row in rows for each in row.values())]
    )


def _write(file: Path, model: str, found: Drift, judgement: Judgement | None, now: float) -> None:
    try:
        exposition.write(file, exposition.samples(found, judgement, now), model)
    except OSError as exc:
        raise QuantizeError(f"{file}: cannot be written ({exc.strerror}); give a folder that you may write to") from exc
