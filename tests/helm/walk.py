"""values.yaml from its first to its last value."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.helm.charts import CHART

Path = tuple[str, ...]


def defaults() -> dict[str, Any]:
    """All of them."""
    return yaml.safe_load((CHART / "values.yaml").read_text())


def schema() -> dict[str, Any]:
    """What they may be."""
    return json.loads((CHART / "values.schema.json").read_text())


def of(path: Path) -> dict[str, Any]:
    """The schema of one value."""
    whole = here = schema()
    for key in path:
        here = here["properties"][key]
        while "$ref" in here:
            here = whole["definitions"][here["$ref"].rpartition("/")[2]]
    return here


def leaves(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each value that can be set, and its default; objects that Kubernetes describes are one value."""
    for key, value in values.items():
        path = (*above, key)
        if isinstance(value, dict) and "properties" in of(path) and value:
            yield from leaves(value, path)
        else:
            yield path, value


def levels(values: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    """Each object."""
    yield above
    for key, value in values.items():
        if isinstance(value, dict):
            yield from levels(value, (*above, key))


def at(path: Path, value: Any) -> dict[str, Any]:
    """Values that set just this."""
    for key in reversed(path):
        value = {key: value}
    return value


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """As Helm does with several files: later ones win, objects are merged."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = result.get(key)
            result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def line_of(node: yaml.Node, path: Path) -> int:
    """Of a key, counted from 0."""
    line = 0
    for key in path:
        line, node = next((k.start_mark.line, v) for k, v in node.value if k.value == key)
    return line
