"""Looks how busy this machine is with something else."""

from typing import NamedTuple

import psutil


class _Used(NamedTuple):
    """Seconds of processors since the machine was started."""

    there: float
    busy: float
    ours: float


class Others:
    """The share of all processors' time that others take from now on: all but this process and what it started."""

    def __init__(self) -> None:
        self._before = _look()

    def share(self) -> float:
        """So far, from 0 to 1."""
        now = _look()
        theirs = now.busy - self._before.busy - (now.ours - self._before.ours)
        return min(1.0, max(0.0, theirs / max(1e-9, now.there - self._before.there)))


def _look() -> _Used:
    times = psutil.cpu_times()
    counted = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # guests are within user
    there = sum(getattr(times, name, 0.0) for name in counted)
    return _Used(there, there - times.idle - getattr(times, "iowait", 0.0), _ours())


def _ours() -> float:
    me = psutil.Process()
    used = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:  # ended meanwhile
            continue
        used += times.user + times.system
    return used
