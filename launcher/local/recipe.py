"""Shape: how to run one instance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from launcher.local.child import Command


@dataclass(frozen=True, slots=True)
class Recipe:
    """One process of the deployment."""

    name: str
    role: str
    url: str
    ready_path: str
    """Answers 200 when the instance can serve."""
    command: Command
    start_budget: float
    """Seconds from the start of its process until it must be ready."""
    on_cpu: bool = False
    """An engine whose threads need :mod:`launcher.local.scheduling`."""
    devices: frozenset[str] = frozenset()
    """On which it takes memory."""
    secrets: Callable[[], Mapping[str, str]] = dict
    """Further variables, read when it starts; raises :class:`launcher.errors.SecretError`."""
