"""The JSON Schema of profile files, made from the types that read them."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from launcher import profile
from launcher.profile import Profile
from proxy import pools, settings

Schema = dict[str, Any]

_EXTENDS: Schema = {
    "type": "string",
    "description": "Another profile, by its shipped name or as a path next to this file; this one changes it. "
    "Mappings merge, anything else replaces, and null takes away.",
}


def of_profiles() -> Schema:
    """JSON Schema, draft 2020-12.

    A file with ``extends`` says only what is different: no key is required then, and any may be null. What goes
    together is not in it: that is :mod:`launcher.preflight`'s.
    """
    made = Profile.model_json_schema()
    definitions: dict[str, Schema] = made["$defs"]
    del definitions["Settings"]["properties"]["objectives"]
    definitions["Objectives"] = definitions.pop("launcher__profile__operation__Objectives")
    del definitions["proxy__settings__Objectives"]
    made["properties"]["objectives"]["$ref"] = "#/$defs/Objectives"
    for name, each in {Profile.__name__: made, **definitions}.items():
        _describe(each, name)
        each.pop("required", None)
        each["properties"] = {key: _or_null(value) for key, value in each.get("properties", {}).items()}
        if not each["properties"]:
            del each["properties"]
    made["properties"] = {"extends": _EXTENDS, **made["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "A Duet profile",
        "if": {"not": {"required": ["extends"]}},
        "then": {"required": ["description", "device", "model", "roles"]},
    }


def _describe(node: Schema, name: str) -> None:
    """Add what the type's own source says of its keys. Pydantic could do it too, each time that a verb starts."""
    owner = next((found for place in (profile, settings, pools) if (found := getattr(place, name, None))), None)
    for key, text in _docstrings(owner) if inspect.isclass(owner) else ():
        if key in node.get("properties", {}):
            node["properties"][key]["description"] = text


def _docstrings(owner: type) -> Iterator[tuple[str, str]]:
    """Each attribute with the string that follows it in the source."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        text = after.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if text is not None and isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, inspect.cleandoc(str(text.value))


def _or_null(value: Schema) -> Schema:
    value = {key: item for key, item in value.items() if key != "title"}
    said: Schema = {key: value.pop(key) for key in ("description", "default") if key in value}
    options = value["anyOf"] if value.keys() == {"anyOf"} else [value]
    return {**said, "anyOf": [*(option for option in options if option != {"type": "null"}), {"type": "null"}]}
