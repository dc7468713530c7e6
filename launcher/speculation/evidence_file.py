"""Decision: evidence as JSON and back. JSON has no infinite numbers: where a bound is not known it is ``null``."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from launcher.plain import plain
from launcher.speculation.evidence import Evidence

SUFFIX = ".speculation.json"
"""After the stem of the profile's file, beside it."""
_EVIDENCE = TypeAdapter(Evidence)
_INTERVAL = {"value": math.nan, "low": -math.inf, "high": math.inf}


def to_data(evidence: Evidence, context: Mapping[str, Any]) -> dict[str, Any]:
    """``context``: command, seed, versions, hardware... of the tuning."""
    return {"evidence": plain(asdict(evidence)), "context": plain(dict(context))}


def from_data(data: object) -> Evidence:
    """Of a parsed file; raises :class:`ValueError` when it is none."""
    if not isinstance(data, dict) or "evidence" not in data:
        raise ValueError("there is no evidence in it")
    try:
        return _EVIDENCE.validate_python(numbers(data["evidence"]))
    except ValidationError as exc:
        raise ValueError(str(exc).splitlines()[0]) from exc


def numbers(value: Any) -> Any:  # noqa: ANN401  # JSON
    """The opposite of :func:`launcher.plain.plain`, where an interval's number is not known."""
    if isinstance(value, dict):
        if value.keys() == _INTERVAL.keys():
            return {key: _INTERVAL[key] if each is None else each for key, each in value.items()}
        return {key: numbers(each) for key, each in value.items()}
    return [numbers(each) for each in value] if isinstance(value, list) else value
