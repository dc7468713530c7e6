"""Shape: who is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Engine:
    """One whose counters are read over the time of a measurement."""

    name: str
    role: str
    metrics: str
    """URL of its metrics, in vLLM's names."""


@dataclass(frozen=True, slots=True)
class Target:
    """One server of OpenAI's API: a Duet proxy, or any other."""

    name: str
    """For people: a profile's name or the URL."""
    url: str
    """Without a slash at its end and without ``/v1``."""
    model: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """With the key, where it asks for one; never written into a report."""
    engines: tuple[Engine, ...] = ()
    """Empty where they cannot be reached: then ``engine_metrics`` may tell of all of them."""
    engine_metrics: str | None = None
    """URL where a Duet proxy tells all engines' metrics in its own names (``/metrics/engines``)."""
