"""Reads unit files as systemd.syntax(7), systemd.service(5) and systemd.exec(5) say that systemd does."""

import re

_C_ESCAPES = {
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "},
    **{"\\": "\\", '"': '"', "'": "'"},
}
Sections = dict[str, list[tuple[str, str]]]


def sections(text: str) -> Sections:
    """Section -> its settings in order, with continued lines merged."""
    found: Sections = {}
    name = ""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            found[name] = []
        elif line and line[0] not in "#;":
            key, _, value = line.partition("=")
            found[name].append((key.strip(), value.strip(" \t")))
    return found


def values(text: str, section: str, key: str) -> list[str]:
    """Of one setting."""
    return [value for name, value in sections(text)[section] if name == key]


def words(line: str) -> list[str]:
    """The items of a line that is unquoted."""
    found: list[bytes] = []
    place, quote, current = 0, "", None
    while place < len(line):
        char = line[place]
        if char == "\\":
            raw, place = _escape(line, place + 1)
            current = (current or b"") + raw
            continue
        if quote:
            if char == quote:
                quote = ""
                assert place + 1 == len(line) or line[place + 1] in " \t", "a quote ends within an item"
            else:
                current = (current or b"") + char.encode("utf-8", "surrogateescape")
        elif char in "\"'":
            assert current is None, "a quote begins within an item"
            quote, current = char, b""
        elif char in " \t":
            if current is not None:
                found.append(current)
            current = None
        else:
            current = (current or b"") + char.encode("utf-8", "surrogateescape")
        place += 1
    assert not quote, "a quote does not end"
    return [each.decode("utf-8", "surrogateescape") for each in (*found, *([] if current is None else [current]))]


def _escape(line: str, place: int) -> tuple[bytes, int]:
    if line[place] == "x":
        return bytes([int(line[place + 1 : place + 3], 16)]), place + 3
    return _C_ESCAPES[line[place]].encode(), place + 1


def command(line: str) -> list[str]:
    """The program and its arguments; no setting of ours lets systemd put in variables."""
    assert line[0] == ":" or line[1] == ":", "systemd would put in variables"
    assert not re.search(r"(^|\s);(\s|$)", line), "two commands"
    first, *others = (specified(each) for each in words(line))
    return [first.removeprefix(":"), *others]


def specified(text: str) -> str:
    """With specifiers expanded, of which only that for a percent sign may be there."""
    assert not re.search(r"%", text.replace("%%", "")), f"a specifier in {text!r}"
    return text.replace("%%", "%")


def environment(text: str) -> dict[str, str]:
    """The variables of a service."""
    pairs = (specified(each) for line in values(text, "Service", "Environment") for each in words(line))
    return dict(each.split("=", 1) for each in pairs)
