"""Decision: a shape as JSON."""

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def to_json(shape: "DataclassInstance", indent: int | None = 1) -> str:
    """All of it; numbers that JSON does not have are ``null``."""
    return json.dumps(_plain(asdict(shape)), indent=indent, ensure_ascii=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
