"""Decision: server-sent events in bytes."""

import re
from collections.abc import Iterator
from typing import NamedTuple

ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
"""What ends an event, as anybody writes it."""
# Atomic groups: the two bytes of one line's end are not the ends of two lines.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Event(NamedTuple):
    """One complete event."""

    start: int
    end: int
    """Where it lies in the text that it was read from, its end included."""
    name: bytes
    data: bytes
    """Empty for a comment."""


def events(text: bytes) -> Iterator[Event]:
    """The complete events of a text, in their order."""
    start = 0
    for blank in _BLANK_LINE.finditer(text):
        name, data = b"", []
        for line in _LINE_END.split(text[start : blank.start()]):
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ")
        yield Event(start, blank.end(), name, b"\n".join(data))
        start = blank.end()


def whole_events(text: bytes) -> tuple[bytes, bytes]:
    """The complete events of a text, and the beginning of one that is not complete yet."""
    end = 0
    for blank in _BLANK_LINE.finditer(text):
        end = blank.end()
    return text[:end], text[end:]


def last_event(text: bytes) -> Event | None:
    """The last event that says something, even if the blank line after it is missing."""
    return next((event for event in reversed([*events(text + b"\n\n")]) if event.data), None)
