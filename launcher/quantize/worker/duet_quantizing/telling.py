"""What a step says while it works, as JSON lines on standard output."""

import json
import sys


class RefusedError(Exception):
    """The input cannot be worked on; the message says what, where, and the fix."""


class Tell:
    """Writes events; libraries that print to standard output go to standard error instead."""

    def __init__(self) -> None:
        self._out = sys.stdout
        sys.stdout = sys.stderr

    def progress(self, title: str, done: int, of: int) -> None:
        """So many of so many steps of what ``title`` names."""
        self._say(event="progress", title=title, done=done, of=of)

    def note(self, text: str) -> None:
        """Something that the user should know."""
        self._say(event="note", text=text)

    def error(self, text: str) -> None:
        """Why there is no result."""
        self._say(event="error", text=text)

    def _say(self, **event: object) -> None:
        self._out.write(json.dumps(event) + "\n")
        self._out.flush()
