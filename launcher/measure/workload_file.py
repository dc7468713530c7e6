"""Reads a workload: a shipped one by name, a YAML file, or JSON lines of real requests."""

import difflib
import json
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from launcher.errors import MeasureError
from launcher.measure.made_up import MadeUp
from launcher.measure.records import requests_of
from launcher.measure.request import Request
from launcher.measure.workload import Workload
from launcher.profile_faults import faults
from launcher.yaml_document import YamlError, read


@dataclass(frozen=True, slots=True)
class Work:
    """A workload with all that it needs to be sent again, on any machine."""

    name: str
    workload: Workload
    recorded: tuple[Request, ...] = ()
    """Of real requests; empty where they are made up."""

    def requests(self, seed: int) -> "MadeUp | tuple[Request, ...]":
        """To be sent in this order."""
        return self.recorded or MadeUp(self.workload.parts, seed)


def shipped() -> dict[str, Path]:
    """The workloads that come with Duet, by name."""
    folder = Path(str(resources.files("launcher.measure"))) / "workloads"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load(reference: str) -> Work:
    """By a shipped name or a path; raises :class:`MeasureError` with all faults."""
    path = _locate(reference)
    if path.suffix == ".jsonl":
        workload = Workload(description=f"Requests of {path.name}", records=path)
        return Work(path.stem, workload, recorded(path, workload.max_tokens))
    workload = _read(path)
    if workload.records is None:
        return Work(path.stem, workload)
    records = Path(os.path.expanduser(workload.records))  # leaves ~nobody as it is, for the message
    return Work(path.stem, workload, recorded(path.parent / records, workload.max_tokens))


def _read(path: Path) -> Workload:
    try:
        document = read(path, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise MeasureError(f"cannot read the workload {path}: {exc}") from exc
    except YamlError as exc:
        raise MeasureError(*exc.faults) from exc
    try:
        return Workload.model_validate_json(json.dumps(document.data))
    except ValidationError as exc:
        raise MeasureError(*faults(exc.errors(), document.data, document, str(path), Workload)) from exc


def _locate(reference: str) -> Path:
    known = shipped()
    if reference in known:
        return known[reference]
    path = Path(reference).expanduser()
    if path.is_file():
        return path
    near = difflib.get_close_matches(reference, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise MeasureError(f"there is no workload {reference}; {hint}Shipped are: {', '.join(known)}; or name a file")


def recorded(path: Path, max_tokens: int) -> tuple[Request, ...]:
    """Requests of a file of JSON lines; raises :class:`MeasureError`."""
    try:
        with path.open(encoding="utf-8") as lines:
            return requests_of(lines, str(path), max_tokens)
    except (OSError, ValueError) as exc:
        raise MeasureError(f"cannot read the records {path}: {exc}") from exc
