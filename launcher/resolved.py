"""All values of a profile, each with the place it comes from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.text import Text

from launcher.loader import Resolved
from launcher.profile import Profile
from launcher.tables import new_table, print_table
from launcher.yaml_document import KeyPath, dotted

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Value:
    """One value."""

    key: str
    """Dotted path."""
    value: Any
    """As JSON; the text of secrets is never in a profile."""
    place: str
    """``file:line``, the option that set it, or ``default``."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"key": self.key, "value": self.value, "from": self.place}


def values(resolved: Resolved) -> list[Value]:
    """Each value that is no mapping, in the order of the profile's keys, but what is not set and has no default.

    Of pools only what is written there: all else is as in the profile itself.
    """
    data = TypeAdapter(Profile).dump_python(resolved.profile, mode="json")
    data["proxy"].pop("objectives")
    found = [
        (path, Value(dotted(path), value, _origin(path, resolved)))
        for path, value in _leaves(data, ())
        if value is not None
    ]
    return [value for path, value in found if path[0] != "pools" or value.place != DEFAULT]


def show(found: list[Value]) -> None:
    """As a table."""
    table = new_table("KEY", "VALUE", "FROM")
    for each in found:
        style = "dim" if each.place == DEFAULT else ""
        text = each.value if isinstance(each.value, str) else json.dumps(each.value)
        table.add_row(*(Text(cell, style) for cell in (each.key, text, each.place)))
    print_table(table)


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:  # noqa: ANN401
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _origin(path: KeyPath, resolved: Resolved) -> str:
    """Where it was written: at its own key, or within what was written of a key above in one piece."""
    written: Any = resolved.document.data
    for key in path:
        if not isinstance(written, Mapping) or key not in written:
            return DEFAULT
        written = written[key]
    return _short(resolved.document.place_of(path) or DEFAULT)


def _short(place: str) -> str:
    """From the current folder, if it lies in there."""
    return place.removeprefix(f"{Path.cwd()}/")
