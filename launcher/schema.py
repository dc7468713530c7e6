"""The JSON Schema of profile files, made from the types that read them."""

from typing import Any

from launcher.profile import Profile

_EXTENDS = {
    "type": "string",
    "description": "Another profile, by its shipped name or as a path next to this file; this one changes it. "
    "Mappings merge, anything else replaces; null takes away.",
}


def of_profiles() -> dict[str, Any]:
    """JSON Schema, draft 2020-12. Files with ``extends`` need no key of their own, hence nothing is required on top."""
    made = Profile.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "A Duet profile"
    made["properties"] = {"extends": _EXTENDS, **made["properties"]}
    del made["required"]
    made["if"] = {"not": {"required": ["extends"]}}
    made["then"] = {"required": ["description", "device", "model", "roles"]}
    settings = made["$defs"]["Settings"]
    settings["properties"] = {key: value for key, value in settings["properties"].items() if key != "objectives"}
    return made
