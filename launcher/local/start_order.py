"""Decision: who may start when. Engines that share a device start one after another.

Each measures how much of the device is free while it starts, and takes what a neighbour has or gives back meanwhile for
its own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ahead:
    """Somebody who is to become ready first."""

    name: str
    device: str
    """That both need."""

    def __str__(self) -> str:
        return f"{self.name} on {self.device}"


def ahead_of(name: str, line: Sequence[str], devices: Mapping[str, Collection[str]]) -> tuple[Ahead, ...]:
    """Those before ``name`` in a line that need a device of its own, in the line's order; all must be ready first.

    ``devices``: what each needs; nothing for whoever shares nothing.
    """
    before = line[: line.index(name)]
    shared = ((other, sorted({*devices.get(name, ())} & {*devices.get(other, ())})) for other in before)
    return tuple(Ahead(other, both[0]) for other, both in shared if both)
