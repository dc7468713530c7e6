"""Shape: one combination of settings that does not work, or not as meant, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter

from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.preflight.matrix.traits import Trait, Traits, traits_of_roles


@dataclass(frozen=True, slots=True)
class Is:
    """One of these values."""

    values: tuple[Trait, ...]

    def __init__(self, *values: Trait) -> None:
        object.__setattr__(self, "values", values)

    def holds(self, value: Trait) -> bool:
        return value in self.values


@dataclass(frozen=True, slots=True)
class IsNot:
    """Known, and none of these values."""

    values: tuple[Trait, ...]

    def __init__(self, *values: Trait) -> None:
        object.__setattr__(self, "values", values)

    def holds(self, value: Trait) -> bool:
        return value is not None and value not in self.values


@dataclass(frozen=True, slots=True)
class Above:
    """A known number greater than this one, or than another trait."""

    limit: float | str

    def holds(self, value: Trait, limit: Trait) -> bool:
        return isinstance(value, int | float) and isinstance(limit, int | float) and value > limit


@dataclass(frozen=True, slots=True)
class Below:
    """A known number less than this one, or than another trait."""

    limit: float | str

    def holds(self, value: Trait, limit: Trait) -> bool:
        return isinstance(value, int | float) and isinstance(limit, int | float) and value < limit


Condition = Is | IsNot | Above | Below


@dataclass(frozen=True, slots=True)
class Combination:
    """All conditions together, for one role, make the fault. Texts may name traits in braces."""

    name: str
    key: str
    when: Mapping[str, Condition]
    what: str
    fix: str
    source: str
    why: str = ""
    severity: Severity = Severity.ERROR
    needs_model: bool = False

    def holds(self, traits: Traits) -> bool:
        """Whether a role has all of it."""
        return all(_holds(condition, traits, name) for name, condition in self.when.items())

    def faults(self, case: Case) -> Iterator[Fault]:
        """One for each role that has all of it."""
        for traits in case.once(traits_of_roles):
            if self.holds(traits):
                yield Fault(
                    self.key.format_map(traits),
                    self.what.format_map(traits),
                    self.fix.format_map(traits),
                    self.why.format_map(traits),
                    {name: str(traits[name]) for name in _named(self.what)},
                    self.severity,
                )

    def rule(self) -> Rule:
        """As all rules of preflight are."""
        return Rule(self.name, Layer.STATIC, self.source, self.faults, self.needs_model)


def _named(text: str) -> Iterator[str]:
    """The traits that a text names, each once."""
    yield from dict.fromkeys(name for _, name, _, _ in Formatter().parse(text) if name)


def _holds(condition: Condition, traits: Traits, name: str) -> bool:
    match condition:
        case Above(limit) | Below(limit):
            return condition.holds(traits[name], traits[limit] if isinstance(limit, str) else limit)
        case Is() | IsNot():
            return condition.holds(traits[name])
