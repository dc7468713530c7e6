"""The JSON Schema of profile files, made from the types that read them."""

from typing import Any

from launcher.profile import Profile

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
    for each in (made, *definitions.values()):
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


def _or_null(value: Schema) -> Schema:
    value = {key: item for key, item in value.items() if key != "title"}
    said: Schema = {key: value.pop(key) for key in ("description", "default") if key in value}
    options = value["anyOf"] if value.keys() == {"anyOf"} else [value]
    return {**said, "anyOf": [*(option for option in options if option != {"type": "null"}), {"type": "null"}]}
