"""Shape: one way to speculate that is tried, and one start of the deployment with it."""

from dataclasses import dataclass

from launcher.speculation.evidence import Point


@dataclass(frozen=True, slots=True)
class Setting:
    """Of the engines that generate."""

    method: str
    """``off`` for K 0."""
    k: int
    schedule: tuple[tuple[int, int, int], ...] = ()
    """Empty: the same K at any batch."""

    @property
    def name(self) -> str:
        """For people and for what was done before: no two settings of one tuning have the same."""
        if not self.k:
            return "off"
        by_batch = ",".join(f"{first}-{last}:{k}" for first, last, k in self.schedule)
        return f"{self.method} k{self.k}" + (f" [{by_batch}]" if by_batch else "")


OFF = Setting("off", 0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A load."""

    concurrency: int
    temperature: float


@dataclass(frozen=True, slots=True)
class Start:
    """The deployment is started once, and measured at every load in this order."""

    stage: str
    """``sweep 1``, ``sweep 2``..., ``confirm 1``..."""
    number: int
    """In its stage, from 0."""
    setting: Setting
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """What one start told of one load."""

    stage: str
    number: int
    setting: str
    """Its name."""
    point: Point
    others: float = 0.0
    """Share of the machine's time that other programs took meanwhile."""
