"""Reads one YAML file strictly and remembers where each key stands.

Scalars follow YAML 1.2's core schema, so ``no``, ``on``, ``0o17``, ``08000`` and ``12:30`` stay text and a wrong
type is reported instead of guessed. Duplicate keys, merge keys and tags are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

KeyPath = tuple[str | int, ...]
Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_MOST_VALUES = 5000
_LONGEST_NUMBER = 40
"""Characters; Python itself refuses to read numbers of thousands."""


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a YAML file and the place of every key in it."""

    data: dict[str, Value]
    places: dict[KeyPath, str] = field(default_factory=dict)
    """Key path -> ``file:line`` (or the option that set it)."""

    def place_of(self, path: KeyPath) -> str | None:
        """Where a key stands, or the nearest one above it.

        A whole part that an option changed something in stands where the option does.
        """
        inside = (place for key, place in self.places.items() if key[: len(path)] == path and place.startswith("--set"))
        above = (self.places[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.places)
        return next(inside, None) or next(above, None)


class YamlError(Exception):
    """The file is not the YAML we accept; ``faults`` has one ``file:line: ...`` message for each fault."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


def read(path: Path, text: str) -> Document:
    """Parse ``text`` of the file ``path``; raises :class:`YamlError` with all faults found."""
    try:
        tags = [token for token in yaml.scan(text) if isinstance(token, yaml.TagToken)]
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        hint = "; YAML indents with spaces, not tabs" if "'\\t'" in (exc.problem or "") else ""
        raise YamlError([f"{path}:{line}: not valid YAML: {exc.problem or exc.context}{hint}"]) from exc
    except yaml.YAMLError as exc:
        raise YamlError([f"{path}: not valid YAML: {' '.join(str(exc).split())}"]) from exc
    except RecursionError as exc:
        raise YamlError([f"{path}: nested too deeply"]) from exc
    reader = _Reader(path)
    reader.faults += [f"{path}:{tag.start_mark.line + 1}: YAML tags are not accepted" for tag in tags]
    if root is None:
        return Document({})
    if not isinstance(root, yaml.MappingNode):
        raise YamlError([f"{path}:1: a profile is a mapping of keys, this file holds something else"])
    data = reader.mapping(root, ())
    if reader.faults:
        raise YamlError(reader.faults)
    return Document(data, reader.places)


def scalar(text: str) -> Value:
    """A plain (unquoted) scalar by YAML 1.2's core schema."""
    if text in {"", "~", "null"}:
        return None
    if text in {"true", "false"}:
        return text == "true"
    if _INT.match(text) and len(text) < _LONGEST_NUMBER:
        return int(text)
    return float(text) if _FLOAT.match(text) else text


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[KeyPath, str] = {}
        self.faults: list[str] = []
        self.values = 0
        self.open: list[yaml.Node] = []
        """The mappings and lists around the current node; an alias to one of them would never end."""

    def place(self, node: yaml.Node) -> str:
        return f"{self.path}:{node.start_mark.line + 1}"

    def value(self, node: yaml.Node, at: KeyPath) -> Value:
        self.values += 1
        if self.values > _MOST_VALUES:  # a few aliases can mean billions
            raise YamlError([f"{self.path}: it holds more than {_MOST_VALUES} values, aliases included"])
        if node in self.open:
            self.faults.append(f"{self.place(node)}: {dotted(at)}: an alias stands inside of what it means")
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return list(self.sequence(node, at))
        text = str(node.value)
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return scalar(text) if plain else text

    def sequence(self, node: yaml.SequenceNode, at: KeyPath) -> Iterator[Value]:
        self.open.append(node)
        for index, item in enumerate(node.value):
            self.places[(*at, index)] = self.place(item)
            yield self.value(item, (*at, index))
        self.open.pop()

    def mapping(self, node: yaml.MappingNode, at: KeyPath) -> dict[str, Value]:
        data: dict[str, Value] = {}
        self.open.append(node)
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.faults.append(
                    f"{self.place(key_node)}: {dotted(at)}: a key is a text, here it is a list or a mapping"
                )
                continue
            key = str(key_node.value)
            here = (*at, key)
            if key == "<<":
                self.faults.append(f"{self.place(key_node)}: {dotted(here)}: merge keys are not accepted; use extends")
                continue
            if key in data:
                self.faults.append(f"{self.place(key_node)}: {dotted(here)} stands twice, first at {self.places[here]}")
                continue
            self.places[here] = self.place(key_node)
            data[key] = self.value(value_node, here)
        self.open.pop()
        return data


def is_hidden(path: KeyPath) -> bool:
    """Whether what stands there may be a secret that somebody wrote as text: no message has it."""
    return not {"env", "secrets", "api-key", "api_key", "hf-token", "hf_token"}.isdisjoint(path)


def dotted(path: KeyPath) -> str:
    """``("roles", "decode", "env")`` as ``roles.decode.env``."""
    return ".".join(map(str, path)) or "(whole file)"
