"""Contract shape: what ``GET /experiment`` answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proxy.sequential import Verdict
from proxy.split import Split

_STRICT: dict[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Ending:
    """A guard has ended the experiment: all requests go to arm A since."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    guard: str
    """``errors`` or ``ttft``."""
    reason: str
    at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class ArmSeen:
    """The requests of one arm since the experiment began, by all processes of the proxy."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    requests: int
    failed: int
    good: int
    """Answered within the objectives."""
    buckets: int
    """Of the split's buckets, those that have sent any."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Requests that are not counted, by reason: ``fell_back``, ``rejected``, ``left``, ``refused``."""
    same_texts: int = 0
    """Of copies without chance (temperature 0, not streamed): those answered with the text that the client got."""
    compared_texts: int = 0


@dataclass(frozen=True, slots=True)
class MetricSeen:
    """What is shown of one metric."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    metric: str
    """``goodput`` and ``errors``: shares of requests; ``ttft`` and ``tpot``: seconds, geometric means."""
    verdict: Verdict
    reason: str
    a: float | None
    b: float | None
    requests: tuple[int, int]
    """Of A and B that have a value."""
    effect: float | None = None
    """B less A for shares; B as a part of A for times: 0.9 is a tenth less."""
    low: float | None = None
    """Of the interval that holds at every look together."""
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ExperimentAnswer:
    """The split in force and what its experiment shows so far."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    split: Split | None = None
    ended: Ending | None = None
    problem: str = ""
    """Why the sums are not kept as they should be; empty when they are."""
    arms: Mapping[str, ArmSeen] = field(default_factory=dict)
    metrics: tuple[MetricSeen, ...] = ()
    """Goodput first: it decides."""
    verdict: Verdict | None = None
    """Of B, compared with A; ``None`` without an experiment."""
    reasons: tuple[str, ...] = ()
