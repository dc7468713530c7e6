"""Shapes: what preflight asks, and what it finds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from launcher.inventory import Inventory
from launcher.plan import Plan
from launcher.preflight.reader import Reader
from launcher.profile import Profile
from launcher.yaml_document import Document

T = TypeVar("T")


class Severity(StrEnum):
    """Whether it keeps a deployment from starting."""

    ERROR = "error"
    WARNING = "warning"


class Layer(StrEnum):
    """What has to be there for a rule to judge, from the cheapest on."""

    STATIC = "static"
    """The profile, the plan and the models' files; no vLLM, no GPU."""
    ENGINE = "engine"
    """vLLM itself, which parses the command lines and builds its configuration."""
    MEMORY = "memory"
    """How much fits; the models' files, and the machine's memory where it is known."""
    HOST = "host"
    """The machine that would run it: ports, devices, packages, limits."""


@dataclass(frozen=True, slots=True)
class Case:
    """What rules judge: a profile, and the plan it becomes on a machine."""

    profile: Profile
    plan: Plan
    inventory: Inventory
    environ: Mapping[str, str] = field(default_factory=dict)
    """The launcher's own environment, which engines inherit."""
    document: Document = field(default_factory=lambda: Document({}))
    """What was written of the profile, with the places."""
    reader: Reader = field(default_factory=Reader, compare=False)
    """Reads the models' folders."""
    _made: dict[Callable[["Case"], Any], Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, make: Callable[["Case"], T]) -> T:
        """What ``make`` makes of this case; made once, however many rules ask."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @property
    def model_is_there(self) -> bool:
        """Whether its files can be judged: a bundled model is made at the first start."""
        return self.profile.model.bundled is None or Path(self.plan.model).is_dir()


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    key: str
    """Dotted path of the profile's key to look at."""
    what: str
    """What is wrong, with the values that do not fit; a clause without a full stop."""
    fix: str
    """What to do; an imperative clause."""
    why: str = ""
    """What would happen; empty where ``what`` says it already."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values that do not fit, each by the key or the file that gives it."""
    severity: Severity = Severity.ERROR

    @property
    def message(self) -> str:
        """All of it as one line, for a terminal."""
        reason = f" ({self.why})" if self.why else ""
        return f"{self.key}: {self.what}{reason}: {self.fix}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One question of preflight."""

    name: str
    """``<topic>/<what is asked>``."""
    layer: Layer
    source: str
    """Where it is known from that this matters."""
    judge: Callable[[Case], Iterable[Fault]]
    needs_model: bool = False
    """It reads the model's files: not to be asked before they are there."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault with the rule that found it and the place of its key."""

    rule: str
    layer: Layer
    source: str
    fault: Fault
    place: str | None = None
    """``file:line`` of the key, or of the nearest one above it that was written."""


def finding(rule: Rule, fault: Fault, document: Document) -> Finding:
    """The fault with its rule, and its place in what was written."""
    return Finding(rule.name, rule.layer, rule.source, fault, document.place_of(tuple(fault.key.split("."))))
