"""Shapes: how large an engine is on each of its devices, and how well that is known."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Whether something fits."""

    FITS = "fits"
    TIGHT = "tight"
    """Only if the estimates hold: the margin does not fit."""
    DOES_NOT_FIT = "does not fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Part:
    """Memory on one device."""

    name: str
    bytes: int
    error: int
    """Bytes by which it may be off either way; 0: exact."""
    known_from: str


@dataclass(frozen=True, slots=True)
class KVSize:
    """A KV cache on each device, and what it holds."""

    bytes: int
    error: int
    """0: the profile says its size."""
    bytes_per_token: int
    """On one device, in layers that keep every token."""
    bytes_per_block: int
    block_size: int
    """Tokens."""
    blocks: int
    tokens: int
    """The size that the engine logs."""
    fewest_tokens: int
    """When everything else is as large as its margin allows."""
    longest: int
    """Tokens of the longest request that the engine takes on, at most what it is told."""
    length: int
    """Tokens of the requests that are counted: the longest that it is told to take on."""
    concurrency: float
    """Requests of so many tokens at once."""
    bytes_per_request: int
    needed: int
    """Bytes with which it takes on one of them; with less the engine does not start."""


@dataclass(frozen=True, slots=True)
class InstanceSize:
    """One engine."""

    name: str
    role: str
    devices: tuple[str, ...]
    """Empty on a CPU."""
    sharding: str
    """``TP 2``..."""
    ranks: int
    """Devices, or on a CPU processes, that need as much each."""
    model: str
    precision: str
    parameters: int | None
    parts: tuple[Part, ...]
    """On the device that has most, without the KV cache."""
    card: int | None
    """Bytes that one device shows the engine; ``None``: not known."""
    budget: int | None
    """Bytes of one device that the engine may use; ``None``: not known."""
    kv: KVSize | None
    margin: float
    verdict: Verdict
    unknown: tuple[str, ...] = ()
    """What could not be counted, one clause each."""
    remarks: tuple[str, ...] = ()

    @property
    def fixed(self) -> int:
        """Bytes on a device beside the KV cache."""
        return sum(part.bytes for part in self.parts)

    @property
    def total(self) -> int:
        """Bytes on a device."""
        return self.fixed + (self.kv.bytes if self.kv else 0)
