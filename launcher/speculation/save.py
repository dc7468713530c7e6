"""Writes what a tuning found: into the profile, with a copy of what it was, and the evidence beside it."""

import difflib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher import loader
from launcher.errors import LauncherError, MeasureError
from launcher.profile import Profile
from launcher.speculation.evidence import Evidence
from launcher.speculation.evidence_file import SUFFIX, to_data
from launcher.speculation.methods import Written, overrides
from launcher.speculation.written import extending, with_speculation
from launcher.yaml_document import Document, Value, read


@dataclass(frozen=True, slots=True)
class Draft:
    """What would be written."""

    file: Path
    text: str
    before: str | None
    """What is there now; ``None``: nothing."""


def draft(reference: str, what: Written | None, out: Path | None) -> Draft:
    """The profile's text with this speculation, proven to mean that and nothing else.

    A shipped profile, or one with ``out``, is extended by a file of its own. Raises :class:`MeasureError` when the file
    cannot be read or edited.
    """
    source = loader.locate(reference)
    is_shipped = source in loader.shipped_profiles().values()
    file = out or (Path(f"{source.stem}-tuned.yaml") if is_shipped else source.resolve())
    if file.resolve() == source.resolve() and not is_shipped:
        before = source.read_text("utf-8")
        text = _edited(source, before, what)
    else:
        if file.exists():
            raise MeasureError(f"{file} is there already: name another file by --out, or tune that profile")
        before, text = None, _extended(reference, source, is_shipped, file, what)
    found = Draft(file, text, before)
    _prove(reference, found, what)
    return found


def save(drafted: Draft, evidence: Evidence, context: Mapping[str, Any]) -> tuple[Path, Path | None]:
    """The evidence's file, and the copy of what was there before; raises :class:`MeasureError`."""
    beside = drafted.file.with_name(f"{drafted.file.stem}{SUFFIX}")
    try:
        is_new = drafted.text != drafted.before
        copy = _copied(drafted.file) if is_new and drafted.before is not None else None
        _replace(beside, json.dumps(to_data(evidence, context), indent=1, allow_nan=False) + "\n")
        if is_new:
            _replace(drafted.file, drafted.text)
    except OSError as exc:
        raise MeasureError(f"{exc.filename}: cannot be written: {exc.strerror}; choose another place by --out") from exc
    return beside, copy


def _edited(source: Path, text: str, what: Written | None) -> str:
    base = _base(source)
    roles = {
        role: _speculation(base, "roles", role) is not None
        for role in ("prefill", "decode", "aggregated")
        if ("roles", role, "speculation") in loader.read_whole(str(source)).places
    }
    return with_speculation(text, what, below=_mapping(_speculation(base)), roles=roles)


def _extended(reference: str, source: Path, is_shipped: bool, file: Path, what: Written | None) -> str:
    whole = loader.read_whole(reference)
    base = reference if is_shipped else os.path.relpath(source.resolve(), file.resolve().parent)
    said = str(whole.data.get("description") or source.stem)
    roles = {
        role: True for role in ("prefill", "decode", "aggregated") if ("roles", role, "speculation") in whole.places
    }
    text = extending(base, f"{said}; speculation as tuned", what, _mapping(_speculation(whole)))
    return with_speculation(text, what, below=_mapping(_speculation(whole)), roles=roles) if roles else text


def _base(source: Path) -> Document:
    """What the file extends; empty where that is nothing."""
    name = read(source, source.read_text("utf-8")).data.get("extends")
    return loader.read_whole(name, beside=source) if isinstance(name, str) else Document({})


def _speculation(document: Document, *above: str) -> Value:
    found: Value = document.data
    for key in (*above, "speculation"):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _mapping(value: Value) -> Mapping[str, Value] | None:
    return value if isinstance(value, dict) else None


def _prove(reference: str, drafted: Draft, what: Written | None) -> None:
    """The text, read as any profile, is the old profile with this speculation."""
    wanted = loader.resolve(reference, overrides(loader.load(reference), what)).profile
    probe = drafted.file.with_name(f".{drafted.file.name}.{os.getpid()}.yaml")
    try:
        probe.write_text(drafted.text, "utf-8")
        found = loader.load(str(probe))
    except OSError as exc:
        raise MeasureError(f"{probe}: cannot be written: {exc.strerror}; choose another place by --out") from exc
    except LauncherError as exc:
        raise MeasureError(f"{drafted.file} cannot be edited ({exc}): write by hand\n{drafted.text}") from exc
    finally:
        probe.unlink(missing_ok=True)
    if _content(found) != _content(wanted):
        raise MeasureError(
            f"{drafted.file} cannot be edited without changing more than speculation: write by hand speculation: "
            f"{json.dumps(what)}"
        )


def _content(profile: Profile) -> dict[str, Any]:
    return profile.model_dump(mode="json", exclude={"description"})


def _copied(file: Path) -> Path:
    number = 1
    while (copy := file.with_name(f"{file.name}.before-tuning{f'-{number}' if number > 1 else ''}")).exists():
        number += 1
    shutil.copy2(file, copy)
    return copy


def _replace(file: Path, text: str) -> None:
    """At once or not at all."""
    new = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        new.write_text(text, "utf-8")
        if file.exists():
            shutil.copymode(file, new)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def difference(drafted: Draft) -> Sequence[str]:
    """Of the profile's lines, as ``diff -u`` shows it."""
    before = (drafted.before or "").splitlines()
    return [*difflib.unified_diff(before, drafted.text.splitlines(), str(drafted.file), "tuned", lineterm="")]
