"""Shape: a comparison of one fact with a value. It holds, does not, or cannot be told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from launcher.advice.facts import FACTS, Value
from launcher.advice.situation import Situation
from launcher.advice.thresholds import Threshold


class Relation(StrEnum):
    """How a fact is compared."""

    IS = "is"
    BELOW = "<"
    AT_LEAST = "≥"
    AMONG = "is one of"


@dataclass(frozen=True, slots=True)
class Condition:
    """``fact relation value``."""

    fact: str
    relation: Relation
    value: Value | tuple[str, ...] | Threshold

    def holds(self, situation: Situation) -> bool | None:
        """``None`` when the fact is unknown."""
        known = situation.value(self.fact)
        if known is None:
            return None
        match self.value:
            case Threshold(value=limit):
                return float(known) < limit if self.relation is Relation.BELOW else float(known) >= limit
            case tuple():
                return known in self.value
            case _:
                return known == self.value

    @property
    def text(self) -> str:
        """For people."""
        match self.value:
            case Threshold(value=value):
                return f"{self.fact} {self.relation} {FACTS[self.fact].show(value)}"
            case tuple():
                return f"{self.fact} {self.relation} {', '.join(self.value)}"
            case _:
                return f"{self.fact} {self.relation} {FACTS[self.fact].show(self.value)}"


def holds(conditions: Iterable[Condition], situation: Situation) -> bool | None:
    """All of them: one that does not hold decides, even beside unknown ones."""
    found = [condition.holds(situation) for condition in conditions]
    return False if False in found else None if None in found else True


def is_(fact: str, value: Value) -> Condition:
    """The fact has this value."""
    return Condition(fact, Relation.IS, value)


def below(fact: str, threshold: Threshold) -> Condition:
    """The number is less."""
    return Condition(fact, Relation.BELOW, threshold)


def at_least(fact: str, threshold: Threshold) -> Condition:
    """The number is as large, or larger."""
    return Condition(fact, Relation.AT_LEAST, threshold)


def among(fact: str, *words: str) -> Condition:
    """The fact is one of these words."""
    return Condition(fact, Relation.AMONG, words)


def filled(template: str, conditions: Iterable[Condition], situation: Situation) -> str:
    """The template with facts by their names, and with the thresholds of the conditions by theirs."""
    limits = {
        each.value.name: FACTS[each.fact].show(each.value.value)
        for each in conditions
        if isinstance(each.value, Threshold)
    }
    return template.format_map(limits | {name: situation.shown(name) for name in FACTS if f"{{{name}}}" in template})


def facts_of(conditions: Iterable[Condition]) -> Mapping[str, None]:
    """The names of the facts, each once, in their order."""
    return dict.fromkeys(condition.fact for condition in conditions)
