"""Shape: what `bench` is asked, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from launcher.measure.conditions import Conditions
from launcher.measure.counted import Counted
from launcher.measure.figures_shape import Figures, Objectives
from launcher.measure.load import Closed, Open
from launcher.measure.request import Request
from launcher.measure.sample import Sample

VERSION = 1
"""Of the report's file."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is measured."""

    load: Closed | Open
    seed: int = 0
    seconds: float | None = 30.0
    """That are counted, after the warm-up; ``None``: so many requests."""
    requests: int | None = None
    warm_up: float = 5.0
    """Seconds of the same load before that."""
    objectives: Objectives = field(default_factory=Objectives)


@dataclass(frozen=True, slots=True)
class Sent:
    """The workload, whole."""

    name: str
    workload: Mapping[str, JsonValue]
    recorded: tuple[Request, ...]
    """Of real requests; empty where they are made up from workload and seed."""
    digest: str
    """Of the first requests: another one means that other requests are made of the same workload and seed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Of processors, while it was measured."""

    client: float
    """Of one core, by this process."""
    others: float | None
    """Share of this machine's that neither this process nor the deployment used; ``None``: it cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Benched:
    """One measurement."""

    target: str
    """Name of a profile, or a URL."""
    reference: str | None
    """What was asked to be measured; ``None``: the deployment that ran."""
    overrides: tuple[str, ...]
    model: str
    settings: Settings
    sent: Sent
    conditions: Conditions
    figures: Figures
    counted: Counted
    usage: Usage
    warmed_up: int
    """Requests before the span that is counted."""
    notes: tuple[str, ...]
    """What speaks against relying on it, the worst first."""
    samples: tuple[Sample, ...]
    version: int = VERSION
