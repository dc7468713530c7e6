"""Shape: what was measured, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.measure.interval import Interval


@dataclass(frozen=True, slots=True)
class Objectives:
    """What a request has to reach to be good; ``None``: whatever it takes."""

    ttft: float | None = None
    """Seconds."""
    tpot: float | None = None
    """Seconds by output token after the first."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is counted of a run: seconds from its start. Warm-up lies before, the last answers after it."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of one latency over all complete requests, in seconds."""

    count: int
    mean: Interval
    percentiles: Mapping[int, Interval | None]
    """50, 90, 95, 99; ``None``: there are too few requests to tell it. Bounds are infinite where they are not known."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run. Latencies and shares are of the requests sent in the span; rates are of what happened in it."""

    span: Span
    objectives: Objectives
    requests: int
    failed: int
    errors: Mapping[str, int]
    """By kind."""
    examples: Mapping[str, str]
    """One whole message of each kind."""
    ttft: Distribution
    tpot: Distribution
    e2e: Distribution
    pause: Distribution
    """The longest between two events of one stream."""
    request_rate: Interval
    """Complete answers a second."""
    output_rate: Interval
    """Output tokens a second."""
    total_rate: Interval
    """Tokens of prompts and answers a second."""
    good_share: Interval
    """Of all requests, those that were answered within the objectives."""
    goodput: Interval
    """Such answers a second."""
    good_output_rate: Interval
    """Their output tokens a second."""
    prompt_tokens: float
    """Of a request, on average."""
    output_tokens: float
    paths: Mapping[str, float]
    """Share of the answers by ``X-Duet-Path``; empty for another server."""
    bypasses: Mapping[str, int]
    """Answers that did without prefill, by reason."""
    pools: Mapping[str, float]
    """Share of the answers by pool, where there are several."""
