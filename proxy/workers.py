"""Several processes that serve one address, and the one that keeps them running.

The parent listens and serves nothing itself; the workers inherit its sockets. They share nothing else: each has its own
connections, probes, limits and counts of what is in flight.
"""

import ctypes
import logging
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

logger = logging.getLogger(__name__)

GAVE_UP = 5
"""Exit code when workers keep dying."""
MOST_ENDS = 5
WINDOW = 60.0
"""Seconds: so many ends of one worker within this time are a crash loop."""
_LOOK = 1.0
"""Seconds until it looks by itself: a library's thread may have got the signal of a worker's end."""
_LONGEST_PAUSE = 30.0
_PR_SET_PDEATHSIG = 1
_WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


@dataclass(slots=True)
class _Slot:
    """One worker through its starts and ends. Times are of ``time.monotonic``."""

    process: subprocess.Popen[bytes] | None = None
    start_at: float = 0.0
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_ENDS))


class Workers:
    """Runs ``count`` times a command, which inherits file descriptors."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        descriptors: Sequence[int],
        environ: Mapping[str, str],
        at_end: Callable[[int], None],
        *,
        first_pause: float = 0.5,
    ) -> None:
        """``at_end`` is told the pid of each that has ended.

        ``first_pause``: seconds before the first restart, doubled with each further one within the window.
        """
        self._command = command
        self._descriptors = descriptors
        self._environ = environ
        self._at_end = at_end
        self._first_pause = first_pause
        self._slots = [_Slot() for _ in range(count)]
        self._stopping = False
        self._code = 0

    def run(self) -> int:
        """Until a signal has ended all workers, or they cannot be kept running; the exit code."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        try:
            while True:
                self._start_those_due()
                if self._stopping and not any(slot.process for slot in self._slots):
                    return self._code
                came = signal.sigtimedwait(_WATCHED, min(_LOOK, self._until_next_start()))
                if came is not None and came.si_signo != signal.SIGCHLD:
                    self._stop()
                for number, slot in enumerate(self._slots):
                    if slot.process is not None and slot.process.poll() is not None:
                        self._ended(number, slot, slot.process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start_those_due(self) -> None:
        for number, slot in enumerate(self._slots):
            if self._stopping or slot.process is not None or slot.start_at > time.monotonic():
                continue
            slot.process = subprocess.Popen(
                self._command,
                env=self._environ,
                pass_fds=self._descriptors,
                stdin=subprocess.DEVNULL,
                preexec_fn=partial(_begin, os.getpid()),
            )
            logger.info("worker %d is pid %d", number, slot.process.pid)

    def _until_next_start(self) -> float:
        """Seconds; long when none is to be started."""
        waiting = [slot.start_at for slot in self._slots if slot.process is None and not self._stopping]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else 3600.0

    def _stop(self) -> None:
        """Pass the wish to end on; each time, since a second one means at once."""
        self._stopping = True
        for slot in self._slots:
            if slot.process is not None:
                slot.process.terminate()

    def _ended(self, number: int, slot: _Slot, process: subprocess.Popen[bytes]) -> None:
        slot.process = None
        self._at_end(process.pid)
        if self._stopping:
            return
        now = time.monotonic()
        slot.ends.append(now)
        recent = [end for end in slot.ends if now - end < WINDOW]
        if len(recent) >= MOST_ENDS:
            logger.error(
                "worker %d has ended %d times within %g s, the last time with code %d: giving up; its own last lines "
                "say why",
                *(number, len(recent), WINDOW, process.returncode),
            )
            self._code = GAVE_UP
            self._stop()
            return
        pause = min(_LONGEST_PAUSE, self._first_pause * 2 ** (len(recent) - 1))
        slot.start_at = now + pause
        logger.warning("worker %d ended with code %d; the next one starts in %g s", number, process.returncode, pause)


def _begin(parent: int) -> None:
    """In the new process: end with the parent, and take only its wishes to end.

    Ctrl+C reaches all processes of a terminal; with the parent's signal it would be the second one. So SIGINT stays
    blocked.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
