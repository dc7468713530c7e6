"""Decision: what two arms have shown within the last minute, from how their sums grow."""

from collections import deque
from dataclasses import astuple

from proxy.experiment.guards import RECENT
from proxy.experiment.measured import Excluded
from proxy.experiment.sums import ArmSums, Cell

_NOT_SERVED = (Excluded.FELL_BACK, Excluded.REJECTED, Excluded.LEFT)
"""Left out of what is compared; but a pool of which nothing else comes is broken."""


class Recent:
    """Remembers the sums of the last minute."""

    def __init__(self) -> None:
        self._before: deque[tuple[float, tuple[Cell, Cell]]] = deque()

    def look(self, now: float, a: ArmSums, b: ArmSums) -> tuple[Cell, Cell]:
        """The last minute's requests of either; those that were not served count as failed. ``now`` in seconds.

        What was before the first look is not known to be recent.
        """
        whole = _with_unserved(a), _with_unserved(b)
        self._before.append((now, whole))
        while self._before[0][0] < now - RECENT and len(self._before) > 1:
            self._before.popleft()
        before = self._before[0][1]
        return _less(whole[0], before[0]), _less(whole[1], before[1])


def _with_unserved(arm: ArmSums) -> Cell:
    whole = arm.whole()
    unserved = sum(arm.excluded.get(reason, 0) for reason in _NOT_SERVED)
    whole.n += unserved
    whole.failed += unserved
    return whole


def _less(now: Cell, before: Cell) -> Cell:
    return Cell(*(new - old for new, old in zip(astuple(now), astuple(before), strict=True)))
