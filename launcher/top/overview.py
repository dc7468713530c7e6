"""Shape: what the proxy's ``/overview`` says, as far as it is shown here. What is not known is ``None``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instance:
    """One engine."""

    name: str
    role: str
    healthy: bool
    draining: bool
    breaker: str
    in_flight: float
    reason: str
    frozen: bool = False
    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = None
    acceptance_rate: float | None = None
    generated_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """The last canary's through a pair that decided something."""

    verdict: str
    at: float
    tokens: int
    bytes_per_second: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One prefill and one decode instance."""

    prefill: str
    decode: str
    standing: str
    reason: str
    proof: Proof | None


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that got no whole answer."""

    at: float
    request_id: str
    status: int
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class Point:
    """Some seconds of the history."""

    at: float
    requests_per_second: float
    failed_per_second: float
    output_tokens_per_second: float | None
    ttft_p50: float | None
    ttft_p95: float | None
    acceptance_rate: float | None
    kv_received_share: float | None
    pd_share: float | None
    in_flight: float
    waiting: float


@dataclass(frozen=True, slots=True)
class History:
    """Points, oldest first."""

    interval: float
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it."""

    at: float
    health: str
    reasons: tuple[str, ...]
    instances: tuple[Instance, ...]
    pairs: tuple[Pair, ...]
    failures: tuple[Failure, ...]
    history: History
