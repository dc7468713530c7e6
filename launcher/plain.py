"""Decision: a shape as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def to_json(shape: "DataclassInstance", indent: int | None = 1) -> str:
    """All of it; numbers that JSON does not have are ``null``."""
    return json.dumps(plain(asdict(shape)), indent=indent, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:  # noqa: ANN401  # JSON
    """The same with ``null`` for numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
