"""Shapes: what preflight asks, and what it finds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from launcher.command_line import options_of
from launcher.inventory import Inventory
from launcher.plan import EngineInstance, Plan
from launcher.preflight.reader import Reader
from launcher.profile import Pool, Profile, RoleSettings
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
        """Whether the models' files can be judged: a bundled model is made at the first start."""
        cases = self.once(Case.by_pool).values()
        return all(each.profile.model.bundled is None or Path(each.plan.model).is_dir() for each in cases)

    def by_pool(self) -> Mapping[str, "Case"]:
        """A case of each pool, as if it were all: by :attr:`proxy.topology.Instance.pool`, the main one's first."""
        if not self.profile.pools:
            return {"": self}
        return {pool: self._of_pool(pool, profile) for pool, profile in self.profile.by_pool().items()}

    def _of_pool(self, pool: str, profile: Profile) -> "Case":
        engines = tuple(engine for engine in self.plan.engines if engine.pool == pool)
        model = options_of(engines[0].argv)["model"]
        scheme = profile.quantization.checkpoint_scheme
        return replace(
            self, profile=profile, plan=replace(self.plan, engines=engines, model=model, checkpoint_scheme=scheme)
        )

    def settings_of(self, engine: EngineInstance) -> RoleSettings:
        """Of the role that an engine has in its pool."""
        roles = self.once(Case.by_pool)[engine.pool].profile.roles
        found: RoleSettings = getattr(roles, engine.role.value)
        return found

    @staticmethod
    def key_of(engine: EngineInstance, key: str) -> str:
        """The dotted path of a key of that role, e.g. ``devices``."""
        return key_in_pool(engine.pool, f"roles.{engine.role}.{key}")


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
    of_all_pools: bool = False
    """It judges all of a deployment at once; others judge each pool as if it were all."""
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


def key_in_pool(pool: str, key: str) -> str:
    """A key of a pool's profile, as the whole profile has it."""
    return f"pools.{pool}.{key}" if pool and key.partition(".")[0] in Pool.model_fields else key


def finding(rule: Rule, fault: Fault, document: Document) -> Finding:
    """The fault with its rule, and its place in what was written."""
    return Finding(rule.name, rule.layer, rule.source, fault, document.place_of(tuple(fault.key.split("."))))
