"""Shape: one request of a measurement, as its client saw it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """Times are seconds of a monotonic clock; ``due``, ``sent`` count from the start of the run."""

    number: int
    """In the workload, from 0: the same number is the same request in every run of one workload."""
    due: float
    """When the load wanted it to be sent; with a closed loop, when it was."""
    sent: float
    ttft: float | None
    """From sending it to the first event that carries text; ``None`` when none came."""
    total: float
    """From sending it to its last event, or to its failure."""
    prompt_tokens: int | None
    """As the answer's usage tells."""
    tokens: int
    """Generated, as the answer's usage tells, else the events that carry text."""
    events: int
    """That carried text; under speculation one has several tokens, so no latency by token is made of events alone."""
    longest_pause: float | None
    """Between two of these events."""
    path: str | None = None
    """``X-Duet-Path``: ``pd`` or ``aggregated``; ``None`` from another server."""
    bypass: str | None = None
    """``X-Duet-Bypass``."""
    pool: str | None = None
    """``X-Duet-Pool``."""
    text: str | None = None
    """Of the answer, where the run was asked to keep it."""
    finish: str | None = None
    """The engine's ``finish_reason``."""
    error: str | None = None
    """Why there is no complete answer, e.g. ``HTTP 503``, ``cut off``, ``timeout``; ``None``: it is complete."""

    @property
    def tpot(self) -> float | None:
        """Seconds by output token after the first (the mean ITL); ``None`` for fewer than two tokens or a failure."""
        if self.error is not None or self.ttft is None or self.tokens < 2:
            return None
        return (self.total - self.ttft) / (self.tokens - 1)
