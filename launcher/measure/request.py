"""Shape: one request of a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

Route = Literal["completions", "chat/completions"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, but for the model's name and for streaming, which the driver adds."""

    route: Route
    """Below ``/v1/``."""
    body: Mapping[str, JsonValue]
    """With ``prompt`` or ``messages``, ``max_tokens``, ``temperature``..."""
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float | None = None
    """Seconds from the first request of a trace."""
    answer: str | None = None
    """Text that a right answer has in it, where the workload knows one: for quality."""
