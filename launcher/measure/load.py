"""Shape: when requests are sent."""

from dataclasses import dataclass
from enum import StrEnum


class Arrivals(StrEnum):
    """How an open loop spaces its requests, whatever becomes of those before."""

    POISSON = "poisson"
    """At random, so many a second on average: independent clients."""
    CONSTANT = "constant"
    """Evenly."""
    TRACE = "trace"
    """As the workload's own times say."""


@dataclass(frozen=True, slots=True)
class Closed:
    """So many clients, each of whom sends its next request as soon as the last one is answered."""

    concurrency: int


@dataclass(frozen=True, slots=True)
class Open:
    """Requests come at their own times."""

    arrivals: Arrivals
    rate: float | None = None
    """Requests a second; with a trace ``None``."""
    speed: float = 1.0
    """Of a trace: 2 replays it in half the time."""
    most: int = 1024
    """Requests at once; what is due beyond that waits, and the run is said to be limited by the client."""


Load = Closed | Open
