"""Decision: a command line for a report: without keys."""

import shlex
from collections.abc import Sequence

from launcher.yaml_document import is_hidden

_SECRET = "--key"
_GONE = "***"


def redacted(arguments: Sequence[str]) -> str:
    """As a shell takes it; where a key stood, three stars do."""
    shown: list[str] = []
    for before, argument in zip(("", *arguments), arguments, strict=False):
        name, equals, value = argument.partition("=")
        if before == _SECRET:
            shown.append(_GONE)
        elif name == _SECRET and equals:
            shown.append(f"{_SECRET}={_GONE}")
        elif name == "--set" and equals:
            shown.append(f"--set={_setting(value)}")
        else:
            shown.append(_setting(argument) if before == "--set" else argument)
    return shlex.join(shown)


def _setting(text: str) -> str:
    key, equals, _ = text.partition("=")
    return f"{key}={_GONE}" if equals and is_hidden(tuple(key.split("."))) else text
