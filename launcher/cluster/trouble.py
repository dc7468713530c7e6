"""Shape: something that keeps a release from serving."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trouble:
    """Of one pod or workload."""

    of: str
    """Its name."""
    why: str
    fix: str
    patience: float | None = None
    """Seconds after which waiting longer is of no use; ``None``: it may end by itself."""
    log: Sequence[str] = ()
    """The last lines that tell of it, oldest first."""
    is_late: bool = False
    """Whether it is only that it took too long."""

    def __str__(self) -> str:
        return f"{self.of}: {self.why}. {self.fix}"
