"""Shape: what one model said of the held-out records, and of the labelled task."""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

WIDTH = 20
"""Most likely tokens of each position that are kept; vLLM's own limit unless it is told another."""


@dataclass(frozen=True, slots=True)
class RecordScores:
    """Of one record, position by position. A damaged one has no positions."""

    actual: "array[int]"
    """Tokens that stand there."""
    logprobs: "array[float]"
    """Of these tokens, in nats."""
    top: "array[int]"
    """The :data:`WIDTH` most likely tokens of each position, the most likely first, one position after the other."""
    top_logprobs: "array[float]"
    damage: str | None = None
    """What kept the model from being scored here: log-probabilities that are no numbers, or missing."""

    @property
    def positions(self) -> int:
        """How many were scored."""
        return len(self.actual)


@dataclass(frozen=True, slots=True)
class TaskScores:
    """Of a labelled task, item by item."""

    kind: str
    """``choice`` or ``exact``."""
    right: tuple[bool, ...]
    chance: float
    """Share that guessing would have right."""
    damage: tuple[str, ...] = ()
    """What kept items from being scored; they count as wrong."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The whole."""

    records: tuple[RecordScores, ...]
    """In the order of the records."""
    task: TaskScores | None = None

    @property
    def damage(self) -> tuple[str, ...]:
        """All that could not be scored."""
        return (*(each.damage for each in self.records if each.damage), *(self.task.damage if self.task else ()))


class Place(NamedTuple):
    """What a model says of one position."""

    actual: int
    logprob: float
    top: Sequence[tuple[int, float]]
    """Token and log-probability, the most likely first."""


@dataclass(slots=True)
class Columns:
    """Gathers places into the scores of a record."""

    _actual: "array[int]" = field(default_factory=lambda: array("q"))
    _logprobs: "array[float]" = field(default_factory=lambda: array("d"))
    _top: "array[int]" = field(default_factory=lambda: array("q"))
    _top_logprobs: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, place: Place) -> None:
        """One more."""
        self._actual.append(place.actual)
        self._logprobs.append(place.logprob)
        for token, logprob in place.top:
            self._top.append(token)
            self._top_logprobs.append(logprob)

    def scores(self) -> RecordScores:
        """All so far."""
        return RecordScores(self._actual, self._logprobs, self._top, self._top_logprobs)


def damaged(text: str) -> RecordScores:
    """Of a record that could not be scored, and why."""
    return RecordScores(array("q"), array("d"), array("q"), array("d"), text)


def dump(scores: Scores) -> str:
    """As JSON; :func:`parse` gives the same again."""
    task = scores.task
    return json.dumps(
        {
            "records": [
                {
                    "actual": each.actual.tolist(),
                    "logprobs": each.logprobs.tolist(),
                    "top": each.top.tolist(),
                    "top_logprobs": each.top_logprobs.tolist(),
                    "damage": each.damage,
                }
                for each in scores.records
            ],
            "task": task and {"kind": task.kind, "right": task.right, "chance": task.chance, "damage": task.damage},
        },
        separators=(",", ":"),
        allow_nan=False,
    )


def parse(text: str) -> Scores:
    """What :func:`dump` wrote; raises :class:`ValueError` for anything else."""
    try:
        document = json.loads(text)
        task = None if document["task"] is None else _task(document["task"])
        return Scores(tuple(map(_record, document["records"])), task)
    except (KeyError, TypeError) as exc:
        raise ValueError(f"these are no scores of the gate ({type(exc).__name__}: {exc})") from exc


def _record(document: dict[str, Any]) -> RecordScores:
    return RecordScores(
        array("q", document["actual"]),
        array("d", document["logprobs"]),
        array("q", document["top"]),
        array("d", document["top_logprobs"]),
        document["damage"],
    )


def _task(document: dict[str, Any]) -> TaskScores:
    return TaskScores(document["kind"], tuple(document["right"]), document["chance"], tuple(document["damage"]))
