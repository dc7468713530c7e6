"""Shape: what both models are asked; tokens, so that both have the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from launcher.errors import QuantizeError


@dataclass(frozen=True, slots=True)
class Record:
    """A held-out one."""

    ids: Sequence[int]
    scored: Sequence[tuple[int, int]]
    """Spans of tokens, from the first to before the last, that are compared: what the assistant said, of a chat."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a labelled task."""

    ids: Sequence[int]
    answer: int | str
    """The right choice's number, from 0; or the text that is expected."""
    choices: Sequence[Sequence[int]] = ()
    """Answers to choose from, as tokens that follow the question's."""


@dataclass(frozen=True, slots=True)
class Task:
    """Questions of one kind."""

    kind: Literal["choice", "exact"]
    items: Sequence[Item]


def records_of(held_out: Sequence[Mapping[str, Any]]) -> tuple[Record, ...]:
    """From the list ``held_out`` of step ``prepare``; raises :class:`QuantizeError`."""
    try:
        return tuple(Record(each["ids"], [(start, end) for start, end in each["scored"]]) for each in held_out)
    except (KeyError, TypeError, ValueError) as exc:
        raise QuantizeError(f"held-out records cannot be read ({exc!r}): prepare them again") from exc


def task_of(document: Mapping[str, Any] | None) -> Task | None:
    """From ``task`` of step ``prepare``; raises :class:`QuantizeError`."""
    if document is None:
        return None
    try:
        items = [Item(each["ids"], each["answer"], each.get("choices", ())) for each in document["items"]]
        kind = document["kind"]
    except (KeyError, TypeError, AttributeError) as exc:
        raise QuantizeError(f"the labelled task cannot be read ({exc!r}): prepare it again") from exc
    for number, item in enumerate(items):
        if kind not in ("choice", "exact") or not _fits(kind, item):
            raise QuantizeError(
                f"item {number} of the labelled task is none of kind {kind!r}: 'choice' needs two choices or more and "
                "the number of the right one, 'exact' the expected text"
            )
    return Task(kind, items)


def _fits(kind: str, item: Item) -> bool:
    if kind == "exact":
        return isinstance(item.answer, str) and bool(item.answer.strip())
    is_number = isinstance(item.answer, int) and not isinstance(item.answer, bool)
    return is_number and all(item.choices) and len(item.choices) > 1 and 0 <= int(item.answer) < len(item.choices)
