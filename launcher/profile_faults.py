"""Decision: what pydantic found wrong with a profile, or another YAML file: the place, the key, what to write."""

import difflib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from launcher.profile import Profile
from launcher.profile.shape import OF_NAMES, OF_VARIABLES
from launcher.yaml_document import Document, KeyPath, Value, dotted, is_hidden


def faults(
    errors: Sequence[ErrorDetails],
    data: dict[str, Value],
    document: Document,
    reference: str,
    shape: type[BaseModel] = Profile,
) -> Iterator[str]:
    """One for each key; of what may be a text or a mapping only what is meant. ``shape``: what the file should have."""
    for error in errors:
        path, kind = _path(error, data)
        is_mapping = isinstance(error["input"], dict)
        of_text, of_mapping = kind.startswith("constrained-") or kind in _SCALARS, kind[:1].isupper()
        if not (of_text and is_mapping) and not (of_mapping and error["type"] in _NO_MAPPING):
            yield _fault(error, path, document, reference, shape)


_SCALARS = frozenset({"str", "int", "float", "bool"})
_NO_MAPPING = frozenset({"model_type", "model_attributes_type", "dataclass_type", "dict_type"})


def _path(error: ErrorDetails, data: dict[str, Value]) -> tuple[KeyPath, str]:
    """The key at fault as the profile has it, and the kind of value, of several, that it was tried as."""
    path: list[str | int] = []
    kind, here = "", data
    if not error["loc"]:
        return (), kind
    *parts, last = error["loc"]
    for part in parts:
        if _has(here, part):
            path.append(part)
            here = here[part]  # type: ignore[index, assignment]
        else:
            kind = str(part)
    if _has(here, last) or error["type"] in _ABOUT_KEYS:
        path.append(last)
    else:
        kind = str(last)
    return tuple(path), kind


_ABOUT_KEYS = frozenset({"missing", "missing_argument"})


def _has(value: object, key: str | int) -> bool:
    if isinstance(value, list) and isinstance(key, int):
        return key < len(value)
    return isinstance(value, dict) and key in value


def _fault(error: ErrorDetails, path: KeyPath, document: Document, reference: str, shape: type[BaseModel]) -> str:
    place = document.place_of(path) or reference
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        near = difflib.get_close_matches(str(path[-1]), _known_keys(path[:-1], shape), n=1)
        message = f"unknown key{f', did you mean {near[0]}?' if near else ''}"
    elif error["type"] in _ABOUT_KEYS:
        message = "is missing"
    elif error["type"] == "json_invalid":
        message = "it is nested too deeply"
    elif error["type"] == "string_pattern_mismatch" and (better := _PATTERNS.get(error["ctx"]["pattern"])):
        message = better
    elif is_hidden(path) and error["type"] in _HIDDEN_HINTS:
        message += _HIDDEN_HINTS[error["type"]]
    else:
        message = _HINTS.get(error["type"], message) + ("" if is_hidden(path) else _given(error))
    return f"{place}: {dotted(path)}: {message}"


def _given(error: ErrorDetails) -> str:
    """What was written in place of what the message asks for."""
    value = error["input"]
    if not isinstance(value, dict | list):
        return f", not {json.dumps(value)}"
    kind = "a list" if isinstance(value, list) else "keys with values"
    return f", not {kind}" if error["type"] in _HINTS else ""


_HINTS = {
    "bool_type": "write true or false, unquoted",
    "int_type": "write a whole number, unquoted",
    "float_type": "write a number, unquoted",
    "string_type": "write text, in quotes if it looks like a number or a switch",
    "list_type": "write a list, e.g. [a, b]",
    "dict_type": "write keys with values below it",
    "model_type": "write keys with values below it",
    "model_attributes_type": "write keys with values below it",
    "dataclass_type": "write keys with values below it",
    "byte_size": "write a size, e.g. 256MiB",
    "byte_size_unit": "write a size with a unit, e.g. 256MiB",
}
"""Pydantic's error type -> better words."""
_PATTERNS = {
    OF_VARIABLES: "the name of a variable has letters, digits and underscores, and begins with no digit",
    OF_NAMES: "it must not begin with a dash: engines would take it for an option",
}
_HIDDEN_HINTS = {
    "model_type": ": write {env: NAME} or {file: PATH}, which tell where the secret is",
    "model_attributes_type": ": write {env: NAME} or {file: PATH}, which tell where the secret is",
}
"""The same, in place of a value that no message has."""


def _known_keys(path: KeyPath, shape: type[BaseModel]) -> list[str]:
    """The keys that the shape knows below ``path``."""
    nodes = [_schema(shape)]
    for part in path:
        values = [value for node in nodes for value in _below(node, part)]
        nodes = [_resolved(option, shape) for value in values for option in (value, *value.get("anyOf", ()))]
    return [key for node in nodes for key in node.get("properties", {})]


def _below(node: dict[str, Any], part: str | int) -> Iterator[dict[str, Any]]:
    """What may stand below a key, or a place in a list."""
    if part in node.get("properties", {}):
        yield node["properties"][part]
    yield from node.get("patternProperties", {}).values()
    if "items" in node and isinstance(part, int):
        yield node["items"]


def _resolved(node: dict[str, Any], shape: type[BaseModel]) -> dict[str, Any]:
    found: dict[str, Any] = _schema(shape)["$defs"][node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node
    return found


@cache
def _schema(shape: type[BaseModel]) -> dict[str, Any]:
    return shape.model_json_schema()
