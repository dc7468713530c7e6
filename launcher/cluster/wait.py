"""Waits for a release, telling what its pods do; ends at once when waiting longer is of no use."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from launcher.cluster.patience import Patience
from launcher.cluster.progress import Doing, doings
from launcher.cluster.rollout import is_done, missing
from launcher.cluster.sight import Object, Sight, ends, name
from launcher.cluster.stuck import troubles
from launcher.cluster.trouble import Trouble
from launcher.errors import LauncherError, NotReadyError, ReleaseError, UnseenError

_MARGIN = 60
"""Seconds more than a pod may take to end."""


class Screen(Protocol):
    """Who is told."""

    def doing(self, now: Sequence[Doing]) -> None:
        """What all pods do now."""

    def trouble(self, found: Trouble) -> None:
        """Something new is wrong."""

    def note(self, text: str) -> None:
        """Something to know."""


class Eyes(Protocol):
    """Who sees the cluster."""

    namespace: str
    where: str
    """Options of a command line that mean it."""

    def look(self, release: str) -> Sight:
        """All of it."""

    def pods(self, release: str) -> Sequence[Object]:
        """Its pods."""

    def lacks_namespace(self) -> bool:
        """Whether it is known that the namespace is not there."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, for which nobody waits in tests."""

    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    pause: Callable[[], None] = lambda: time.sleep(1.0)
    """Between two looks."""


def until_ready(cluster: Eyes, release: str, within: float, screen: Screen, clock: Clock) -> Sight:
    """Until all of the newest version serve.

    Raises :class:`ReleaseError` when a pod cannot start, :class:`NotReadyError` when it takes too long.
    """
    begun, patience, noted = clock.monotonic(), Patience(), set[str]()
    while True:
        now = clock.monotonic() - begun
        try:
            sight = cluster.look(release)
        except UnseenError as exc:
            if now > within:
                raise
            _note([f"{exc}; trying again"], noted, screen)
            clock.pause()
            continue
        _note(sight.notes, noted, screen)
        screen.doing(doings(sight, clock.epoch()))
        if is_done(sight):
            return sight
        found = troubles(sight)
        for each in patience.new(found, now):
            screen.trouble(each)
        if final := patience.final(found, now):
            raise _failure([str(each) for each in final], final)
        if now > within:
            raise NotReadyError("; ".join([f"not ready after {within:.0f} s", *missing(sight), *map(str, found)]))
        clock.pause()


def until_gone(cluster: Eyes, release: str, screen: Screen, clock: Clock) -> None:
    """Until no pod of it is there; raises :class:`NotReadyError` when one outlives what it may take to end."""
    begun, within = clock.monotonic(), 0.0
    while pods := cluster.pods(release):
        within = max([within, *(pod["spec"].get("terminationGracePeriodSeconds", 30) for pod in pods)])
        screen.doing(doings(Sight(pods=pods), clock.epoch()))
        if clock.monotonic() - begun > within + _MARGIN:
            there = [name(pod) for pod in pods]
            how = "is its node there? kubectl delete pod --force" if all(map(ends, pods)) else "who keeps it?"
            raise NotReadyError(f"{', '.join(there)}: still there after {within + _MARGIN:.0f} s; {how}")
        clock.pause()


def _note(texts: Sequence[str], noted: set[str], screen: Screen) -> None:
    for text in texts:
        if text not in noted:
            noted.add(text)
            screen.note(text)


def _failure(messages: Sequence[str], final: Sequence[Trouble]) -> LauncherError:
    log = next((each.log for each in final if each.log), ())
    if all(each.is_late for each in final):
        return NotReadyError("; ".join(messages), log)
    return ReleaseError(messages, log)
