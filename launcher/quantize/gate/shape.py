"""Shape: what the gate asks for, and what it found."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Of a gate, and of a whole quantization."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """The data shows neither; more of it would."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a quantized model must keep to."""

    loss: float = 1.0
    """Points of accuracy that may be lost, of 100."""
    kl: float = 0.1
    """Nats by which the distribution of the next token may differ, on average."""
    agreement: float = 0.85
    """Share of positions at which both must give the same token the most."""
    floor: float = 0.1
    """Accuracy that the baseline itself must have; below, the comparison says nothing."""
    confidence: float = 0.95
    """Of each one-sided bound."""
    records: int = 32
    """Held-out records below which nothing is concluded."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number with its interval (95 %, two-sided, unless said otherwise)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Check:
    """One question of the gate and its answer."""

    name: str
    """``token KL``, ``top-1 agreement``, ``next-token accuracy``, ``task accuracy``..."""
    figure: Figure
    """Its bounds are one-sided, each of the limits' confidence."""
    limit: float
    unit: str
    """``nats``, ``share``, ``points``."""
    verdict: Verdict
    reason: str
    """One sentence for people: what was measured, against what, and what follows."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A labelled task, each item asked of both models."""

    items: int
    baseline: float
    """Share that was right."""
    candidate: float
    worse: int
    """Items that only the baseline had right."""
    better: int
    """Items that only the quantized model had right."""
    needed: int
    """Items with which the verdict could be had, at the share of changed answers seen here; 80 % power."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one candidate against its baseline."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """The decisive ones first."""
    is_proxy: bool
    """Judged by next-token figures alone: no labelled task was given."""
    checks: tuple[Check, ...]
    records: int
    positions: int
    """Tokens that were compared."""
    noise: float
    """Nats of KL that the baseline has against itself, asked twice; subtracted from nothing, told beside all."""
    nll_change: Figure
    """Nats a token by which the real text became less likely; negative: more likely. Told, never judged."""
    kl_of_records: tuple[float, ...]
    """Mean KL of each record, for a plot."""
    task: TaskResult | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """How the quantized model's speed compares, both served in the same way on this machine."""

    ttft: Figure
    """Ratio quantized / baseline of the time to the first token; below 1 is faster."""
    tpot: Figure
    """The same of the time per output token."""
    throughput: Figure
    """Ratio of output tokens a second; above 1 is faster."""
    baseline_ttft: float
    """Seconds, median."""
    baseline_tpot: float
    baseline_throughput: float
    """Tokens a second."""
    concurrency: int
    requests: int
    reason: str
    """Faster, slower, or no difference shown: one sentence, and one of ``alone``."""
    alone: "Speed | None" = None
    """The same with one request at a time."""
    is_disturbed: bool = False
    """Whether something else used the machine meanwhile, so that nothing follows from the figures."""
