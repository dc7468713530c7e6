"""Shape: what a comparison of two servers found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from launcher.measure.interval import Interval
from launcher.measure.sample import Sample


class Side(StrEnum):
    """Who served a block."""

    A = "a"
    """What is compared with."""
    B = "b"
    """What is judged."""


class Verdict(StrEnum):
    """What the data say of B against A."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference shown"
    """Any difference lies within the margin."""
    TRADED = "better and worse"
    """Of a whole comparison only: better in one metric, worse in another."""
    UNKNOWN = "not enough data"


@dataclass(frozen=True, slots=True)
class Block:
    """One run of one side, without its warm-up."""

    side: Side
    pair: int
    """From 0; both blocks of a pair got the same requests, one after the other."""
    samples: tuple[Sample, ...]
    seconds: float
    """From the first request to the end of the last."""
    probes: tuple[Sample, ...] = ()
    """Greedy requests that every block begins with, the same in each; with their texts."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """By :data:`launcher.measure.compare.METRICS`; one that the block does not tell is missing."""
    others: float = 0.0
    """Share of the machine's time that other programs took meanwhile."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Something that is compared by a ratio."""

    name: str
    title: str
    unit: str
    more_is_better: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric of B, compared with A's."""

    metric: Metric
    a: float | None
    """Geometric mean of the blocks; ``None`` where no block tells."""
    b: float | None
    ratio: Interval
    """Of B to A over pairs of blocks: 1 is no difference."""
    pairs: int
    """That tell of both."""
    p: float
    """Two-sided, of no difference; 1 where it cannot be told."""
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Quality:
    """Whether answers became worse."""

    kind: str
    """``answers``: right ones of those that the workload knows; ``agreement``: equal greedy texts."""
    items: int
    a: float
    """Share right; with ``agreement`` the share in which A agrees with itself."""
    b: float
    """Share right; with ``agreement`` the share in which B agrees with A."""
    loss: Interval
    """Points of 100 that B has less than A."""
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it."""

    a: str
    b: str
    effects: tuple[Effect, ...]
    quality: Quality | None
    verdict: Verdict
    sentence: str
    """Always with the time to the first token next to the time by further token."""
    notes: tuple[str, ...] = ()
