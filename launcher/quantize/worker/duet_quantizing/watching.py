"""Turns what llm-compressor logs and draws into events."""

import io
import re
from typing import Any, TextIO

from .telling import Tell

_BAR = re.compile(r"\((\d+)/(\d+)\): (Calibrating|Propagating)")
_FALLBACK = re.compile(r"Hessian inversion failed for (\d+)/(\d+) modules")
_STEPS_OF_LAYER = 2


class Watch(io.TextIOBase):
    """Standard error, whose progress bars are read in passing; lines of a bar end with a carriage return."""

    def __init__(self, below: TextIO, tell: Tell) -> None:
        self._below, self._tell, self._last = below, tell, -1

    def write(self, text: str) -> int:
        """Pass on, and tell of a step that began."""
        for number, of, kind in _BAR.findall(text):
            step = (int(number) - 1) * _STEPS_OF_LAYER + (kind == "Propagating")
            if step != self._last:
                self._last = step
                self._tell.progress("calibrating layer by layer", step, int(of) * _STEPS_OF_LAYER)
        return self._below.write(text)

    def flush(self) -> None:
        """Of what is below."""
        self._below.flush()

    def isatty(self) -> bool:
        """A bar is drawn all the same; nobody sees it."""
        return False


class Fallbacks:
    """Counts layers that GPTQ gave up on and that were rounded to nearest instead; the library only logs it."""

    def __init__(self) -> None:
        self.layers, self.of = 0, 0

    def __call__(self, message: Any) -> None:
        """A sink of loguru."""
        if found := _FALLBACK.search(str(message)):
            self.layers, self.of = self.layers + int(found[1]), self.of + int(found[2])
