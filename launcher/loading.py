"""Decision: what an engine is doing while it loads, read from the lines of its log."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Loading:
    """How far an instance is with its start."""

    title: str
    """What it does now."""
    stage: int = 0
    stages: int = 1
    """The current one, from 0, of so many."""
    done: int = 0
    of: int = 0
    """Pieces of this stage, e.g. files of weights; 0 of 0 when the log does not tell."""

    @property
    def fraction(self) -> float:
        """Of the whole start, between 0 and 1."""
        return (self.stage + (self.done / self.of if self.of else 0.0)) / self.stages

    def __str__(self) -> str:
        return f"{self.title}, {self.done} of {self.of} ({self.done / self.of:.0%})" if self.of else self.title


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of an engine's start."""

    title: str
    marker: re.Pattern[str]
    """Found in the log line that begins it."""


# Log lines of vLLM 0.32, in the order in which they appear.
STAGES = (
    Stage("importing vLLM", re.compile(r"\A")),
    Stage("reading the model's configuration", re.compile(r"non-default args")),
    Stage("starting the engine core", re.compile(r"Resolved architecture")),
    _WEIGHTS := Stage("loading weights", re.compile(r"Starting to load model")),
    Stage("allocating the KV cache", re.compile(r"Loading weights took")),
    Stage("warming up", re.compile(r"KV cache size")),
    Stage("starting the server", re.compile(r"init engine .* took")),
)
FIRST = Loading(STAGES[0].title, 0, len(STAGES))

_PIECES = re.compile(r"% Completed \| (\d+)/(\d+)")
"""Of the files of weights."""


def after(lines: Iterable[str], now: Loading = FIRST) -> Loading:
    """How far it is once it has written these lines."""
    for line in lines:
        for index in range(now.stage + 1, len(STAGES)):
            if STAGES[index].marker.search(line):
                now = Loading(STAGES[index].title, index, len(STAGES))
        # Those of a draft come later, and are few.
        if STAGES[now.stage] is _WEIGHTS and (pieces := _PIECES.search(line)):
            now = replace(now, done=int(pieces[1]), of=int(pieces[2]))
    return now
