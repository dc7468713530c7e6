"""Decision: how texts are written in unit files, so that systemd reads exactly these again.

As ``systemd.syntax(7)`` and ``systemd.service(5)`` say it.
"""

import re
from collections.abc import Sequence

from launcher.errors import PlanError

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}
_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
_CONTINUED = " \\\n    "
_IN_A_NAME = re.compile(r"[^A-Za-z0-9:_.-]")
_LONGEST_NAME = 255


def command(argv: Sequence[str]) -> str:
    """For ``ExecStart=`` and its kind, an option a line: nothing in it is a variable of systemd's."""
    program = argv[0]
    if not program.startswith("/") or not program.isprintable():
        raise PlanError(
            f"systemd cannot start {program!r}: it takes absolute paths without control characters; write the whole "
            "path in engine_command"
        )
    first = word(f":{program}")
    return "".join([first, *(f"{_CONTINUED if part.startswith('--') else ' '}{word(part)}" for part in argv[1:])])


def assignment(name: str, value: str) -> str:
    """For ``Environment=``."""
    return word(f"{name}={value}")


def word(text: str) -> str:
    """One item of a line that is unquoted and whose specifiers are expanded."""
    if _NEEDS_NO_QUOTES.fullmatch(text):
        return text
    quote = "'" if '"' in text and "'" not in text else '"'
    return f"{quote}{''.join(_character(each, quote, text) for each in text)}{quote}"


def rest_of_line(text: str) -> str:
    """What stands alone up to the end of a line, e.g. a path, and is not unquoted."""
    if not text.isprintable() or text != text.strip() or text.endswith("\\"):
        raise PlanError(
            f"systemd cannot take {text!r}: choose a name without control characters, blanks or \\ at its ends"
        )
    return text.replace("%", "%%")


def description(text: str) -> str:
    """For people: control characters become blanks."""
    return " ".join(text.split()).rstrip("\\").replace("%", "%%")


def unit_name(*parts: str, suffix: str) -> str:
    """``<parts>.<suffix>``, with ``\\xNN`` for what a unit's name cannot have, as ``systemd-escape`` writes it."""
    name = _IN_A_NAME.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match[0].encode()), "-".join(parts))
    if len(name) + len(suffix) + 1 > _LONGEST_NAME:
        raise PlanError(f"{name} is too long for the name of a unit: give the profile a shorter one")
    return f"{name}.{suffix}"


def _character(each: str, quote: str, text: str) -> str:
    if each == "\0":
        raise PlanError(f"systemd cannot take {text!r}: it has a zero byte")
    if each == quote:
        return f"\\{quote}"
    if each in _ESCAPES or each.isprintable():
        return _ESCAPES.get(each, each)
    return "".join(f"\\x{byte:02x}" for byte in each.encode("utf-8", "surrogateescape"))
