"""Shape: under which a measurement was made, so that it can be judged and made again."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of the machine that measured; the server may be on another."""

    command: str
    """Without the text of keys."""
    started: str
    """ISO 8601, in UTC."""
    versions: Mapping[str, str]
    """Of Duet, Python, vLLM as the server tells it, and what computes."""
    system: str
    processor: str
    cores: int
    """That this process may use."""
    memory: int
    """Bytes."""
    gpus: tuple[str, ...]
