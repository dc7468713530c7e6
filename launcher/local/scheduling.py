"""Puts right how a CPU engine's threads share the cores, from outside, once it is ready. Linux only.

Two facts of vLLM 0.32 with NIXL on a CPU make requests stall for seconds when instances share a machine:

- NIXL pins the main thread of *every* instance to the same last core (``nixl/base_worker.py``);
- NIXL's progress thread polls without a pause and takes a core per instance, also when idle.

So threads get back the cores that we have, and the pollers give way to whatever has real work. Priorities count only
within a session (see :mod:`launcher.local.child`), so all instances stay in the launcher's.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LOWEST_PRIORITY = 19
WATCH = 0.5
"""Seconds over which a thread's use of the CPU is looked at."""
BUSY = 0.1
"""Share of that time from which a thread counts as running."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one thread consumed so far."""

    cpu: float
    """Seconds."""
    waits: int
    """How often it gave up the CPU by itself."""


async def settle(process_group: int) -> None:
    """Do it for every thread of a process group.

    Call it while the engine is idle: a thread that runs then, without ever waiting, only polls.
    """
    cores = os.sched_getaffinity(0)
    threads = list(_threads(process_group))
    for thread in threads:
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)
    before = {thread: _usage(thread) for thread in threads}
    await asyncio.sleep(WATCH)
    for thread in threads:
        if _polls(before[thread], _usage(thread)):
            with suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), LOWEST_PRIORITY)


def _polls(before: Usage | None, after: Usage | None) -> bool:
    if before is None or after is None:
        return False
    return after.waits == before.waits and after.cpu - before.cpu > BUSY * WATCH


def _threads(process_group: int) -> Iterator[Path]:
    for pid in psutil.pids():
        with suppress(ProcessLookupError, FileNotFoundError):
            if os.getpgid(pid) == process_group:
                yield from Path(f"/proc/{pid}/task").iterdir()


def _usage(thread: Path) -> Usage | None:
    """``None`` for a thread that has ended."""
    try:
        fields = (thread / "stat").read_text().rpartition(")")[2].split()
        status = (thread / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    waits = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return Usage((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), waits)
