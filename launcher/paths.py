"""Paths of a profile, as engines and other processes need them."""

import re
from pathlib import Path

from launcher.errors import PlanError

_HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")


def absolute(path: Path | str, key: str) -> str:
    """From the root on, with the home folder for ``~``; raises :class:`PlanError` where there is no such home."""
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError as exc:
        raise PlanError(f"{key}: {path}: {exc}; write the whole path") from exc


def is_path(where: str) -> bool:
    """Of what is either a folder or a hub id: whether it is written as a path."""
    return where.startswith(("/", "~", "."))


def folder_or_id(where: str, key: str) -> str:
    """A path as engines need it; a hub id stays as it is."""
    return absolute(where, key) if is_path(where) else where


def is_hub_id(where: str) -> bool:
    """Whether the Hugging Face hub could have a model of this name."""
    return _HUB_ID.fullmatch(where) is not None
