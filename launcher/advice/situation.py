"""Shape: what is known of a deployment and its traffic, each fact with its origin; what is not there is unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from launcher.advice.facts import FACTS, Value


class Origin(StrEnum):
    """Where a fact is known from."""

    ANSWERED = "answered"
    MEASURED = "measured"
    CONFIGURED = "configured"
    """The plan of the running deployment says so."""
    DERIVED = "derived"
    """Computed from other facts."""
    DEFAULT = "default"
    """Nobody said anything else."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known."""

    value: Value
    origin: Origin


@dataclass(frozen=True, slots=True)
class Situation:
    """Facts by their names in :data:`launcher.advice.facts.FACTS`."""

    facts: Mapping[str, Fact] = field(default_factory=dict)

    def value(self, name: str) -> Value | None:
        """``None`` when it is unknown; raises :class:`KeyError` for a name that no fact has."""
        FACTS[name]
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    def number(self, name: str) -> float | None:
        """The same of a fact that is a number."""
        value = self.value(name)
        return None if value is None else float(value)

    def shown(self, name: str) -> str:
        """With its unit, for people."""
        value = self.value(name)
        return "unknown" if value is None else FACTS[name].show(value)

    def plus(self, values: Mapping[str, Value | None], origin: Origin) -> "Situation":
        """With these facts too; what is known already stays, ``None`` adds nothing.

        So what is added first weighs most.
        """
        new = {
            name: Fact(FACTS[name].checked(value), origin)
            for name, value in values.items()
            if value is not None and name not in self.facts
        }
        return replace(self, facts={**self.facts, **new})
