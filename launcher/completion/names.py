"""Looks up what exists now: profiles beside us, instances of the deployment that is meant."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import platformdirs

from launcher.completion.vocabulary import Kind


class Existing:
    """``shipped``: the names of the profiles that come with Duet."""

    def __init__(self, shipped: Iterable[str], environ: Mapping[str, str]) -> None:
        self._shipped = shipped
        self._environ = environ

    def __call__(self, kind: Kind, typed: str, before: Sequence[str]) -> Iterable[str]:
        """Those that begin so."""
        return self._profiles(typed) if kind is Kind.PROFILE else self._instances(typed, before)

    def _profiles(self, typed: str) -> Iterable[str]:
        yield from (name for name in self._shipped if name.startswith(typed))
        folder, _, beginning = typed.rpartition("/")
        for entry in os.scandir(Path(f"{folder}/").expanduser() if "/" in typed else "."):
            if entry.name.startswith(beginning) and (beginning or not entry.name.startswith(".")):
                path = f"{folder}/{entry.name}" if "/" in typed else entry.name
                if entry.is_dir():
                    yield f"{path}/"
                elif entry.name.endswith((".yaml", ".yml")):
                    yield path

    def _instances(self, typed: str, before: Sequence[str]) -> Iterable[str]:
        state = json.loads((_run_directory(before, self._environ) / "state.json").read_bytes())
        names = (each["name"] for each in state["instances"])
        return [name for name in names if name.startswith(typed) and name not in before]


def _run_directory(before: Sequence[str], environ: Mapping[str, str]) -> Path:
    for index, each in enumerate(before):
        if each == "--run-dir" and index + 1 < len(before):
            return Path(before[index + 1])
        if each.startswith("--run-dir="):
            return Path(each.removeprefix("--run-dir="))
    return Path(environ.get("DUET_RUN_DIR") or Path(platformdirs.user_state_dir("duet")) / "run")
