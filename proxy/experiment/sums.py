"""Shape: what is kept of the requests of an experiment: a few sums for each arm and bucket, however many there are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter

from proxy.sequential import Mass


@dataclass(slots=True)
class Cell:
    """The requests of one bucket to one arm. TTFT and TPOT are natural logarithms of seconds."""

    n: int = 0
    failed: int = 0
    good: int = 0
    """Answered, and all objectives were met that could be measured."""
    streamed: int = 0
    """Those whose TTFT is known."""
    ttft: float = 0.0
    ttft_squares: float = 0.0
    paced: int = 0
    """Those whose TPOT is known."""
    tpot: float = 0.0
    tpot_squares: float = 0.0

    def add(self, other: "Cell") -> None:
        """Another process's, or that of one request."""
        self.n += other.n
        self.failed += other.failed
        self.good += other.good
        self.streamed += other.streamed
        self.ttft += other.ttft
        self.ttft_squares += other.ttft_squares
        self.paced += other.paced
        self.tpot += other.tpot
        self.tpot_squares += other.tpot_squares


MASSES: Mapping[str, Callable[[Cell], Mass]] = {
    "goodput": lambda cell: Mass(cell.n, cell.good, cell.good),
    "errors": lambda cell: Mass(cell.n, cell.failed, cell.failed),
    "ttft": lambda cell: Mass(cell.streamed, cell.ttft, cell.ttft_squares),
    "tpot": lambda cell: Mass(cell.paced, cell.tpot, cell.tpot_squares),
}
"""By metric, for :mod:`proxy.sequential`."""


@dataclass(slots=True)
class ArmSums:
    """One arm."""

    cells: dict[int, Cell] = field(default_factory=dict)
    """By bucket."""
    excluded: dict[str, int] = field(default_factory=dict)
    """Requests that say nothing of the arm, by reason."""
    same: int = 0
    """Copies whose text was that of what they are copies of."""
    other: int = 0
    """Those whose text was another one."""

    def add(self, bucket: int, cell: Cell) -> None:
        """Of one request, or of another process."""
        self.cells.setdefault(bucket, Cell()).add(cell)

    def exclude(self, reason: str, count: int = 1) -> None:
        """Count requests without a say."""
        self.excluded[reason] = self.excluded.get(reason, 0) + count

    def whole(self) -> Cell:
        """Of all buckets."""
        total = Cell()
        for cell in self.cells.values():
            total.add(cell)
        return total

    def masses(self, metric: str) -> dict[int, Mass]:
        """By bucket; only buckets that have any."""
        mass_of = MASSES[metric]
        found = ((bucket, mass_of(cell)) for bucket, cell in self.cells.items())
        return {bucket: mass for bucket, mass in found if mass.n}


Sums = dict[str, ArmSums]
"""By arm."""


def total(parts: Iterable[Sums]) -> Sums:
    """Of several processes, of which some may have ended long ago."""
    whole: Sums = {}
    for part in parts:
        for arm, sums in part.items():
            into = whole.setdefault(arm, ArmSums())
            for bucket, cell in sums.cells.items():
                into.add(bucket, cell)
            for reason, count in sums.excluded.items():
                into.exclude(reason, count)
            into.same += sums.same
            into.other += sums.other
    return whole


def dumped(sums: Sums) -> bytes:
    """As JSON."""
    return _adapter().dump_json(sums)


def loaded(text: bytes) -> Sums:
    """What :func:`dumped` made; raises :class:`ValueError` for anything else."""
    return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[Sums]:
    return TypeAdapter(Sums)
