"""State: how many draft tokens were accepted lately, by task, as answers tell it."""

from collections import OrderedDict
from dataclasses import dataclass

from proxy.usage import Drafted

_TASKS = 10_000
"""That are remembered; those used least lately are forgotten first."""
_ENOUGH = 100
"""Draft tokens before anything is said of a task."""
_LATELY = 2_000
"""Draft tokens that count; older ones fade."""


@dataclass(slots=True)
class _Task:
    drafted: float = 0.0
    accepted: float = 0.0
    asked: int = 0


class Acceptance:
    """Of the tasks of one process's requests."""

    def __init__(self, explore: int) -> None:
        """``explore``: every so many-th request of a task counts as if nothing were known; 0: none."""
        self._explore = explore
        self._tasks: OrderedDict[str, _Task] = OrderedDict()

    def of(self, task: str) -> float:
        """What is to be expected of the next request; 1 where that is to be found out."""
        known = self._task(task)
        known.asked += 1
        explores = self._explore and known.asked % self._explore == 0
        return 1.0 if explores or known.drafted < _ENOUGH else known.accepted / known.drafted

    def add(self, task: str, drafted: Drafted) -> None:
        """One answer more."""
        known = self._task(task)
        known.drafted += drafted.drafted
        known.accepted += drafted.accepted
        if known.drafted > _LATELY:
            known.accepted *= _LATELY / known.drafted
            known.drafted = _LATELY

    def _task(self, task: str) -> _Task:
        known = self._tasks.setdefault(task, _Task())
        self._tasks.move_to_end(task)
        if len(self._tasks) > _TASKS:
            self._tasks.popitem(last=False)
        return known
