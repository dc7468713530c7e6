"""The reference of all keys of a profile, as a page: made of the schema, so of the types' own docstrings."""

import json
from collections.abc import Iterator

from launcher.schema import Schema

_HEAD = """# Profiles: every key

Made from the schema by `launcher schema --as markdown`. `launcher show PROFILE` prints a profile's values and where
each comes from, `launcher check PROFILE` says whether it would run. For completion in an editor, write the schema to a
file (`launcher schema > profile.schema.json`) and begin a profile with
`# yaml-language-server: $schema=profile.schema.json`.

Scalars follow YAML 1.2: only `true` and `false` are booleans (`yes`, `no`, `on`, `off` are text), `0o17` and `08000`
are text, and no quoted value is a number. A wrong type, an unknown key, a key that stands twice, a tab or a tag ends in
a message with the line and the key. Sizes have units (`256MiB`, `80GB`), times are seconds.
"""
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true` or `false`"}


def page(schema: Schema) -> str:
    """Markdown, with a section for each mapping, in the order of the types."""
    return _HEAD + "".join(_section("", schema, schema))


def _section(path: str, node: Schema, root: Schema) -> Iterator[str]:
    title = f"`{path}`" if path else "The whole"
    said = f"{_text(node)}\n\n" if path and _text(node) else ""
    yield f"\n## {title}\n\n{said}| key | value | default | |\n| --- | --- | --- | --- |\n"
    inner = []
    for key, value in node["properties"].items():
        here = f"{path}.{key}" if path else key
        found = _mapping(value, root)
        inner += [(f"{here}{where}", each) for where, each in _inside(value, root)]
        yield f"| `{key}` | {_kind(value, root)} | {_default(value, found)} | {_text(value) or _said(value, root)} |\n"
    for here, found in inner:
        if here not in _SAME_AS:
            yield from _section(here, found, root)
        else:
            yield f"\n## `{here}`\n\nThe same keys as [`{_SAME_AS[here]}`](#{_anchor(_SAME_AS[here])}).\n"


_SAME_AS = {
    "secrets.NAME": "roles.prefill.secrets.NAME",
    "pools.NAME.model": "model",
    "pools.NAME.roles": "roles",
    "pools.NAME.quantization": "roles.prefill.quantization",
    "pools.NAME.speculation": "roles.prefill.speculation",
    "pools.NAME.secrets.NAME": "roles.prefill.secrets.NAME",
    "proxy.admin_keys": "proxy.client_keys",
    "roles.decode": "roles.prefill",
    "roles.aggregated": "roles.prefill",
    "quantization": "roles.prefill.quantization",
    "speculation": "roles.prefill.speculation",
    "proxy.timeouts.decode": "proxy.timeouts.prefill",
}
"""Mappings of a kind that stands above already."""


def _anchor(path: str) -> str:
    return path.replace(".", "").lower()


def _options(value: Schema) -> list[Schema]:
    return [option for option in value.get("anyOf", [value]) if option != {"type": "null"}]


def _resolve(value: Schema, root: Schema) -> Schema:
    reference = value.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[-1]] if reference else value


def _mapping(value: Schema, root: Schema) -> Schema | None:
    """The mapping with keys of its own that a value may be."""
    return next((each for option in _options(value) if "properties" in (each := _resolve(option, root))), None)


def _inside(value: Schema, root: Schema) -> Iterator[tuple[str, Schema]]:
    """Mappings with keys of their own in a value, each with where below it: itself, of names, or of a list."""
    if (found := _mapping(value, root)) is not None:
        yield "", found
    for option in _options(value):
        for entries in option.get("patternProperties", {}).values():
            if (found := _mapping(entries, root)) is not None:
                yield ".NAME", found
        if (found := _mapping(option.get("items", {}), root)) is not None:
            yield "", found


def _kind(value: Schema, root: Schema) -> str:
    return " or ".join(dict.fromkeys(_one_kind(_resolve(option, root), root) for option in _options(value)))


def _one_kind(node: Schema, root: Schema) -> str:
    if "anyOf" in node and "ge" in node:
        return "size"
    if "anyOf" in node:
        return _kind(node, root)
    if "enum" in node:
        return ", ".join(f"`{each}`" for each in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    if "properties" in node:
        return "mapping, see below"
    if node.get("type") == "object":
        of = node.get("additionalProperties")
        return f"mapping of {_kind(of, root)}" if isinstance(of, dict) and of else "mapping"
    if node.get("type") == "array":
        return f"list of {_kind(node['items'], root)}" if "items" in node and "prefixItems" not in node else "list"
    return _TYPES.get(str(node.get("type")), "anything") + _bounds(node)


def _bounds(node: Schema) -> str:
    least, most, above = node.get("minimum"), node.get("maximum"), node.get("exclusiveMinimum")
    if least is not None and most is not None:
        return f", {least} to {most}"
    if least is not None:
        return f", {least} or more"
    return f", more than {above}" + (f", {most} at most" if most is not None else "") if above is not None else ""


def _default(value: Schema, found: Schema | None) -> str:
    default = value.get("default")
    if default is None or found is not None:
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _said(value: Schema, root: Schema) -> str:
    """Of the kind of value that it is."""
    return next((text for option in _options(value) if (text := _text(_resolve(option, root)))), "")


def _text(node: Schema) -> str:
    return " ".join(str(node.get("description", "")).replace("``", "`").replace("|", "\\|").split())
