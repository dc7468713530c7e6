"""Shape: what `compare` is asked, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.measure.bench_shape import Sent
from launcher.measure.compare_shape import Comparison, Side
from launcher.measure.conditions import Conditions
from launcher.measure.figures_shape import Objectives
from launcher.measure.load import Closed, Open

VERSION = 1
"""Of the report's file."""


@dataclass(frozen=True, slots=True)
class Served:
    """One side."""

    name: str
    """For people."""
    reference: str
    """Profile or URL."""
    overrides: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    """What was derived, where it is derived from the other side."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How both sides are measured."""

    a: Served
    b: Served
    load: Closed | Open
    pairs: int = 4
    seconds: float = 30.0
    """Of one block, after its probes."""
    seed: int = 0
    objectives: Objectives = field(default_factory=Objectives)
    margin: float = 0.05
    model: str | None = None
    """Of several that a URL serves."""


@dataclass(frozen=True, slots=True)
class BlockTold:
    """One block in numbers."""

    side: Side
    pair: int
    requests: int
    failed: int
    metrics: Mapping[str, float]
    others: float | None
    """Share of the machine's time that other programs took; ``None``: it cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Compared:
    """All of it."""

    asked: Asked
    sent: Sent
    comparison: Comparison
    blocks: tuple[BlockTold, ...]
    conditions: Mapping[Side, Conditions]
    version: int = VERSION
