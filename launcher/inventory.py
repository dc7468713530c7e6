"""Shape: what a machine has, as far as planning and preflight need to know."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Gpu:
    """One CUDA device."""

    index: int
    name: str
    uuid: str
    memory_total: int
    """Bytes."""
    memory_free: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What is taken of one CUDA device at one moment."""

    free: int
    """Bytes."""
    pids: frozenset[int] = frozenset()
    """Of the processes that have memory there, as far as the driver tells them to this container."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who listens on a TCP port."""

    pid: int | None
    """``None`` when the process belongs to another user and cannot be seen."""
    command: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights that an engine loads."""

    name: str
    """An absolute folder or a hub id."""
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operating system and the driver grant; ``None`` is what nobody could tell."""

    open_files: int | None = None
    """The most that a process of this user may have open."""
    shared_memory: int | None = None
    """Bytes free in ``/dev/shm``."""
    disk: int | None = None
    """Bytes free where bundled models and what was checked are kept."""
    driver_cuda: int | None = None
    """The CUDA version that the driver supports, as 1000 x major + 10 x minor."""
    engine_cuda: int | None = None
    """The CUDA major version that the installed engine is built for."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """A machine at one moment."""

    cores: int
    """CPU cores this process may use."""
    memory_total: int
    """Bytes."""
    memory_available: int
    """Bytes that can be taken without swapping."""
    python: str
    """The interpreter that runs engines and proxy."""
    cache: Path
    """Where bundled models lie."""
    gpus: tuple[Gpu, ...] = ()
    listeners: Mapping[int, Listener] = field(default_factory=dict)
    """TCP port -> who listens on it."""
    engine_version: str = ""
    """Of vLLM in that interpreter; empty when there is none."""
    limits: Limits = field(default_factory=lambda: Limits())
    weights: Mapping[Checkpoint, str] = field(default_factory=dict)
    """Digests of what lies on this machine."""
