"""Shape: what runs now, as the supervisor writes it and `launcher status` reads it."""

from dataclasses import dataclass
from enum import StrEnum

from launcher.loading import Loading

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
