"""Shape: what runs now, as the supervisor writes it and `launcher status` reads it."""

from dataclasses import dataclass
from enum import StrEnum

PROXY = "proxy"
"""What stands for the role of the one instance that is no engine."""


class State(StrEnum):
    """Of one instance."""

    WAITING = "waiting"
    """Not started yet."""
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    """Ended by itself; starts again after a pause."""
    FAILED = "failed"
    """Ended by itself too often; stays down."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Loading:
    """How far an instance is with its start."""

    title: str
    """What it does now."""
    stage: int = 0
    stages: int = 1
    """The current one, from 0, of so many."""
    done: int = 0
    of: int = 0
    """Pieces of this stage, e.g. files of weights; 0 of 0 when the log does not tell."""

    @property
    def fraction(self) -> float:
        """Of the whole start, between 0 and 1."""
        return (self.stage + (self.done / self.of if self.of else 0.0)) / self.stages

    def __str__(self) -> str:
        return f"{self.title}, {self.done} of {self.of} ({self.done / self.of:.0%})" if self.of else self.title


@dataclass(frozen=True, slots=True)
class InstanceState:
    """One process of the deployment."""

    name: str
    role: str
    """A role of the topology, or ``proxy``."""
    url: str
    state: State = State.WAITING
    pid: int | None = None
    """Of the engine or proxy itself."""
    keeper_pid: int | None = None
    """Of the small process that watches it; also its process group."""
    started_at: float | None = None
    """Seconds since the epoch."""
    restarts: int = 0
    reason: str | None = None
    """Why it is not ready, or why it was started again the last time."""
    waits_for: str | None = None
    """Who starts on the same device and has to be ready first: ``<instance> on <device>``."""
    loading: Loading | None = None
    """While it starts."""
    start_budget: float = 0.0
    """Seconds from ``started_at`` until it must be ready."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One launcher and its instances."""

    profile: str
    launcher_pid: int
    started_at: float
    """Seconds since the epoch."""
    mark: str
    """In the environment of all its processes."""
    address: str
    """Where clients go."""
    model: str
    """The name clients use."""
    ready: bool
    """Everything was ready once; from then on the supervisor restarts what ends."""
    stops_within: float
    """Seconds that the launcher needs at most to stop everything."""
    instances: tuple[InstanceState, ...]
    kv_lease: float = 0.0
    """Seconds that prefill keeps KV for decode; 0 without prefill."""
