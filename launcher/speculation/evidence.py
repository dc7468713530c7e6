"""Shape: what was measured of speculation, kept beside the profile that was tuned by it."""

from dataclasses import dataclass
from enum import StrEnum

from launcher.measure.interval import Interval


class Origin(StrEnum):
    """Where a point comes from."""

    MEASURED = "measured"
    MODELLED = "modelled"
    """Between measured points, by a model that was fitted to them."""


@dataclass(frozen=True, slots=True)
class Point:
    """One method with one K under one load. Rates are of the whole deployment."""

    method: str
    """``off`` for K 0."""
    k: int
    concurrency: int
    """Requests at once, in a closed loop."""
    temperature: float
    goodput: Interval
    """Output tokens a second of requests that met the profile's objectives."""
    throughput: Interval
    """Output tokens a second."""
    tpot: Interval
    """Median seconds by output token."""
    ttft: Interval
    """Median seconds."""
    acceptance: float | None
    """Accepted of drafted tokens; ``None`` where nothing was drafted."""
    acceptance_length: float | None
    """Tokens by step of the engine, the model's own included."""
    requests: int
    failed: int
    origin: Origin = Origin.MEASURED


@dataclass(frozen=True, slots=True)
class Choice:
    """What is best at one load, and what shows it."""

    concurrency: int
    method: str
    k: int
    gain: Interval
    """Goodput over that of K 0, over all temperatures of the workload as they are weighed."""
    of_best: Interval
    """Goodput over that of the best fixed K at this load: 1 when it is that one."""
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of one tuning."""

    profile: str
    points: tuple[Point, ...]
    choices: tuple[Choice, ...]
    schedule: tuple[tuple[int, int, int], ...]
    """First and last number of running requests of one engine, and K; empty: do not speculate."""
    method: str
    k: int
    """The largest of the schedule; 0: do not speculate."""
    verdict: str
    """One sentence."""
