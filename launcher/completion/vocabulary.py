"""Shape: what there is to complete, as JSON-able data."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self


class Kind(StrEnum):
    """What a word stands for."""

    PROFILE = "profile"
    INSTANCE = "instance"
    SETTING = "setting"
    OTHER = "other"
    """Nothing that we know; the shell offers files."""


@dataclass(frozen=True, slots=True)
class Word:
    """A place for a word on a command line."""

    kind: Kind = Kind.OTHER
    choices: tuple[str, ...] = ()
    """If it is one of these."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command."""

    options: dict[str, Word | None]
    """With dashes; ``None`` for a switch, which takes no word."""
    argument: Word | None
    """What its words without dashes are; ``None`` when it takes none."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All of them."""

    verbs: dict[str, Verb]
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Dotted path of each key of a profile -> its values, where there are few."""

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self:
        """From what :func:`dataclasses.asdict` has made, and JSON in between."""
        return cls(
            {
                name: Verb({option: _word(each) for option, each in verb["options"].items()}, _word(verb["argument"]))
                for name, verb in data["verbs"].items()
            },
            {path: tuple(values) for path, values in data["settings"].items()},
        )


def _word(data: dict[str, Any] | None) -> Word | None:
    return None if data is None else Word(Kind(data["kind"]), tuple(data["choices"]))
