"""Looks how busy this machine is with something else."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import psutil


class _Used(NamedTuple):
    """Seconds of processors since the machine was started."""

    there: float
    busy: float
    ours: float


class Others:
    """The share of all processors' time that others take from now on: all but these processes and what they started."""

    def __init__(self, *pids: int) -> None:
        """``pids``: beside this process."""
        self._ours = (os.getpid(), *pids)
        self._before = _look(self._ours)

    def share(self) -> float:
        """So far, from 0 to 1."""
        now = _look(self._ours)
        theirs = now.busy - self._before.busy - (now.ours - self._before.ours)
        return min(1.0, max(0.0, theirs / max(1e-9, now.there - self._before.there)))


def _look(ours: Iterable[int]) -> _Used:
    times = psutil.cpu_times()
    counted = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # guests are within user
    there = sum(getattr(times, name, 0.0) for name in counted)
    return _Used(there, there - times.idle - getattr(times, "iowait", 0.0), _used(ours))


def _used(pids: Iterable[int]) -> float:
    used = 0.0
    for process in _family(pids):
        with suppress(psutil.Error):  # ended meanwhile
            times = process.cpu_times()
            used += times.user + times.system
    return used


def _family(pids: Iterable[int]) -> set[psutil.Process]:
    found: set[psutil.Process] = set()
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            found |= {process, *process.children(recursive=True)}
    return found
