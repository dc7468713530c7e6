"""Reads the vocabulary from the command line itself and from the types of profiles; slow, since that imports them."""

import inspect
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from typer.models import ArgumentInfo, OptionInfo

from launcher import cli, schema
from launcher.completion.vocabulary import Kind, Verb, Vocabulary, Word

_KINDS = {"PROFILE": Kind.PROFILE, "INSTANCE": Kind.INSTANCE, "KEY.PATH=VALUE": Kind.SETTING}
"""By what the help calls them."""


def read() -> Vocabulary:
    """All verbs, options and keys that there are."""
    found = schema.of_profiles()
    verbs = {str(each.name): _verb(each.callback) for each in cli.app.registered_commands if each.callback}
    return Vocabulary(verbs, dict(_settings(found, found["$defs"])))


def _verb(function: Callable[..., object]) -> Verb:
    options: dict[str, Word | None] = {"--help": None}
    argument = None
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        for info in getattr(hint, "__metadata__", ()):
            word = Word(_KINDS.get((info.metavar or "").strip("[]."), Kind.OTHER), _choices(hint.__origin__))
            if isinstance(info, ArgumentInfo):
                argument = word
            elif isinstance(info, OptionInfo):
                options |= dict.fromkeys(_names(name, info), None if _is_switch(hint.__origin__) else word)
    return Verb(options, argument)


def _names(parameter: str, info: OptionInfo) -> list[str]:
    """Typer keeps the first one where a default would be if there were no annotation."""
    written = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    return [name for each in written or [f"--{parameter.replace('_', '-')}"] for name in each.split("/")]


def _is_switch(kind: object) -> bool:
    return bool in (kind, *typing.get_args(kind))


def _choices(kind: object) -> tuple[str, ...]:
    """Of an enumeration, also as an item of a list and beside ``None``."""
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return tuple(str(each.value) for each in kind)
    return tuple(choice for each in typing.get_args(kind) for choice in _choices(each))


def _settings(node: dict[str, Any], shapes: dict[str, Any], path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Path -> values of all keys below; of a key that may be several things, those of each."""
    for alternative in node.get("anyOf", [node]):
        shape = shapes[alternative["$ref"].rpartition("/")[2]] if "$ref" in alternative else alternative
        if "properties" in shape:
            for key, each in shape["properties"].items():
                yield from _settings(each, shapes, f"{path}.{key}".strip("."))
        elif "anyOf" in shape:
            yield from _settings(shape, shapes, path)
        elif shape.get("type") != "null":
            values = ("true", "false") if shape.get("type") == "boolean" else shape.get("enum", ())
            yield path, tuple(map(str, values))
