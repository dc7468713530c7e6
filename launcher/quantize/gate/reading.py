"""Decision: what vLLM's ``prompt_logprobs`` say."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.quantize.gate.records import Record
from launcher.quantize.gate.scores import WIDTH, Columns, Place, RecordScores

_CLAMPED = -9999.0
"""What vLLM writes for minus infinity, which no JSON can."""
_DIGITS = 6
"""Kept of a log-probability: a millionth of a nat is below what any engine repeats."""


class UnusableError(Exception):
    """A log-probability is missing or no number."""


def record_scores(record: Record, told: object) -> RecordScores:
    """Of its scored positions. ``told``: a mapping of each position from token to ``logprob`` and ``rank``.

    The first token of a prompt has none, and is left out. Raises :class:`UnusableError`.
    """
    columns = Columns()
    for start, end in record.scored:
        for position in range(max(1, start), min(end, len(record.ids))):
            columns.add(_place(record.ids[position], _at(told, position), position))
    return columns.scores()


def mean_logprob(ids: Sequence[int], start: int, told: object) -> float:
    """Of the tokens from ``start`` on, in nats a token; raises :class:`UnusableError`."""
    return sum(_logprob(_at(told, i), ids[i], i) for i in range(start, len(ids))) / (len(ids) - start)


def _place(actual: int, said: Mapping[str, Any], position: int) -> Place:
    logprob = _logprob(said, actual, position)
    found = [(int(token), _logprob(said, token, position)) for token in said]
    # The token that stands there comes on top of the most likely ones if it is none of them. Equal ones are told in any
    # order: by their number, both models' lists have the same.
    top = sorted(found, key=lambda each: (-each[1], each[0]))[:WIDTH]
    if len(top) < WIDTH:
        raise UnusableError(f"token {position} has {len(top)} log-probabilities, not {WIDTH}")
    if top[-1][1] <= _CLAMPED:
        raise UnusableError(f"token {position} has a log-probability of minus infinity among the most likely")
    return Place(actual, logprob, top)


def _at(told: object, position: int) -> Mapping[str, Any]:
    said = told[position] if isinstance(told, Sequence) and position < len(told) else None
    if not isinstance(said, Mapping):
        raise UnusableError(f"token {position} has no log-probabilities")
    return said


def _logprob(said: Mapping[str, Any], token: int | str, position: int) -> float:
    entry = said.get(str(token))
    value = entry.get("logprob") if isinstance(entry, Mapping) else None
    if not isinstance(value, float | int) or not math.isfinite(value):
        raise UnusableError(f"token {position} has the log-probability {value}")
    return round(float(value), _DIGITS)
