"""Asks a deployment's proxy for its overview."""

import httpx
from pydantic import TypeAdapter, ValidationError

from launcher.errors import RunDirectoryError
from launcher.local.asking import allowed, ask
from launcher.local.run_directory import RunDirectory
from launcher.top.overview import Overview

_PATIENCE = 5.0
_OVERVIEW = TypeAdapter(Overview)


def gather(directory: RunDirectory) -> tuple[Overview, str]:
    """What a deployment's proxy says, also as the JSON text that it is.

    Raises :class:`RunDirectoryError` when nothing runs or answers.
    """
    answer = ask(directory, "GET", "/overview", _PATIENCE)
    return read(answer), answer.text


def read(answer: httpx.Response) -> Overview:
    """Of an answer; raises :class:`RunDirectoryError` when that is none."""
    try:
        return _OVERVIEW.validate_json(allowed(answer))
    except ValidationError as exc:
        raise RunDirectoryError(f"{answer.request.url} answered {answer.status_code}, not an overview") from exc
