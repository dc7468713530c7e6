"""Decision: what an upgrade changes, as a unified difference of objects. No text of a Secret is in it."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from launcher.cluster.values import to_yaml

_CONTEXT = 2
"""Lines around a change."""
_HIDDEN = "(hidden)"
_HIDDEN_NEW = "(hidden, another one)"


@dataclass(frozen=True, slots=True)
class Change:
    """Of one object."""

    of: str
    """Kind and name."""
    sign: str
    """``+`` for a new one, ``-`` for one that goes, ``~`` for one that changes."""
    lines: Sequence[str] = ()
    """How, each with a sign in front."""


def objects(manifest: str) -> dict[str, Mapping[str, object]]:
    """Those of a text of several YAML documents, by kind and name."""
    found = (each for each in yaml.load_all(manifest, yaml.CSafeLoader) if each)
    return {f"{each['kind']} {each['metadata']['name']}": each for each in found}


def changes(old: str, new: str) -> list[Change]:
    """Between two manifests; empty when they say the same."""
    return [*_changes(objects(old), objects(new))]


def _changes(old: Mapping[str, Mapping[str, object]], new: Mapping[str, Mapping[str, object]]) -> Iterator[Change]:
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before is None:
            yield Change(key, "+")
        elif after is None:
            yield Change(key, "-")
        elif before != after:
            yield Change(key, "~", _lines(before, after))


def _lines(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[str, ...]:
    old, new = (to_yaml(_sorted(_hidden(each, before))).splitlines() for each in (before, after))
    found = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    return tuple(found)[2:]  # the names of files


def _hidden(each: Mapping[str, object], before: Mapping[str, object]) -> Mapping[str, object]:
    if each["kind"] != "Secret":
        return each
    return {
        key: _blank(value, before.get(key)) if key in {"data", "stringData"} else value for key, value in each.items()
    }


def _blank(texts: object, before: object) -> object:
    """Without what nobody may see, but so that it is seen what changes."""
    known = before if isinstance(before, dict) else {}
    found = texts if isinstance(texts, dict) else {}
    return {key: _HIDDEN if text == known.get(key) else _HIDDEN_NEW for key, text in found.items()}


def _sorted(value: object) -> dict[str, object]:
    """Keys in order, so that their order is no difference."""
    return {key: _in_order(each) for key, each in sorted(value.items())} if isinstance(value, dict) else {}


def _in_order(value: object) -> object:
    if isinstance(value, dict):
        return _sorted(value)
    return [_in_order(each) for each in value] if isinstance(value, list) else value
