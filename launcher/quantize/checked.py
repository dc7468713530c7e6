"""What the last check of a published checkpoint found, in its folder: for the doctor, and for whoever asks later."""

import json
from dataclasses import dataclass
from pathlib import Path

from launcher.quantize.drift import Level
from launcher.quantize.manifest import FOLDER

_FILE = "checked.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """In short."""

    level: Level
    reasons: tuple[str, ...]
    at: float
    """Seconds since the epoch."""


def keep(folder: Path, kept: Kept) -> None:
    """In place of what was kept before, at once; raises :class:`OSError` where nothing may be written."""
    file = folder / FOLDER / _FILE
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"level": int(kept.level), "reasons": kept.reasons, "at": kept.at}) + "\n")
    new.replace(file)


def last(folder: Path) -> Kept | None:
    """``None`` where there was no check, or where it cannot be read."""
    try:
        told = json.loads((folder / FOLDER / _FILE).read_text())
        return Kept(Level(told["level"]), tuple(map(str, told["reasons"])), float(told["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
