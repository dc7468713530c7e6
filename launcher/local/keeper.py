"""Keeps one process of the deployment: pumps its output into a rotating log and never leaves a survivor.

Runs as a program of its own between launcher and engine, so that nothing outlives the launcher, not even when that is
killed with SIGKILL, and nothing outlives an engine's main process, not even its grandchildren:

- it is a *subreaper*: orphaned descendants become its children, so it finds and ends them all by pid;
- its standard input is a pipe held by the launcher: end of file means the launcher is gone;
- the engine's main process gets SIGKILL from the kernel should the keeper itself be killed; what that process started
  is found by a mark in its environment, by the launcher or, if that was killed too, by the other keepers.

Prints two lines: the engine's pid, and its exit code (128 + signal for a signal) once it and all that it started have
ended. Only then it takes them off the process table, which may last (see :func:`take_off`), and exits with that code.
Standard library only, and started without site-packages: one per instance should cost little. Linux only.
"""

import argparse
import contextlib
import ctypes
import logging
import logging.handlers
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ORPHAN_GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL once the launcher is gone."""

CANNOT_START = 127
LONGEST_LINE = 65536
"""Bytes; longer ones are cut into several."""
LAST_OUTPUT = 2.0
"""Seconds for what was printed just before the end."""
SWEEP = 5.0
"""Seconds to go on looking for strays; only one that hangs in the kernel survives that."""
LOOK = 1.0
"""Seconds after which the process is looked at even if no signal told of its end."""
RELIST = 0.02
"""Seconds between two looks at descendants that shall end."""
REST = 1.0
"""Seconds for the last threads of descendants to clear up, before these are taken off the process table."""
MARK = "DUET_INSTANCE"
"""Environment variable ``<deployment>/<instance>`` by which strays are found."""
RUN_MARK = "=== duet:"
"""Begins the log lines between which one run's output stands."""


def main() -> int:
    """Parse the command line, keep the process, return its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--log-bytes", type=int, required=True)
    parser.add_argument("--log-files", type=int, required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    handler = logging.handlers.RotatingFileHandler(
        options.log, maxBytes=options.log_bytes, backupCount=options.log_files, errors="replace"
    )
    try:
        keeper = Keeper(options.command, handler, options.grace)
    except OSError as exc:
        handler.emit(log_record(f"{RUN_MARK} not started"))
        handler.emit(log_record(f"cannot start {options.command[0]}: {exc.strerror}"))
        return CANNOT_START
    return keeper.run()


def prctl(option: int, value: int) -> None:
    """Linux's process control; raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


class Keeper:
    """One engine from start to the end of its last descendant."""

    def __init__(self, command: list[str], log: logging.handlers.RotatingFileHandler, grace: float) -> None:
        self.log = log
        self.grace = grace
        self.kill_at: float | None = None
        self.rest = b""
        self.wakeup, wakeup_writer = os.pipe()
        os.set_blocking(wakeup_writer, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # only wakes the loop
        # Sent by the kernel when the launcher dies while one of this process group is stopped.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        keeper = os.getpid()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: die_with_parent(keeper),
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.output, False)

    def run(self) -> int:
        """Until the process and all its descendants are gone and their output is written."""
        os.write(1, b"%d\n" % self.process.pid)
        self.mark(f"pid {self.process.pid} started")
        watched = {self.output, self.wakeup, 0}
        orphaned = False
        while (code := ended(self.process.pid)) is None:
            timeout = LOOK if self.kill_at is None else max(0.0, self.kill_at - time.monotonic())
            ready, _, _ = select.select(watched, [], [], timeout)
            if self.wakeup in ready and not {*os.read(self.wakeup, 64)} <= {signal.SIGCHLD}:
                self.stop(self.grace)
            if 0 in ready and not os.read(0, 64):
                watched.discard(0)
                orphaned = True
                self.stop(min(self.grace, ORPHAN_GRACE))
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                os.kill(self.process.pid, signal.SIGKILL)
            if self.output in ready and not self.pump():
                watched.discard(self.output)
            self.reap()
        self.process.returncode = code  # it must not take it off by itself
        had_others = end_descendants(self.process.pid)
        deadline = time.monotonic() + LAST_OUTPUT
        while self.pump() and self.rest_is_there() and time.monotonic() < deadline:
            pass
        self.write(self.rest)
        self.mark(f"ended with {code}")
        with contextlib.suppress(BrokenPipeError):  # the launcher is gone
            os.write(1, b"%d\n" % code)
        if orphaned and (deployment := os.environ.get(MARK, "").partition("/")[0]):
            end_marked(deployment)  # of an instance whose keeper was killed together with the launcher
        take_off(REST if had_others else 0.0)
        return code

    def stop(self, grace: float) -> None:
        """Ask the process to end; SIGKILL follows after ``grace`` seconds. Asked again, only the sooner end counts."""
        kill_at = time.monotonic() + grace
        self.kill_at = min(kill_at, self.kill_at or kill_at)
        os.kill(self.process.pid, signal.SIGTERM)

    def pump(self) -> bool:
        """Write some of what the process printed; ``False`` at the end of its output.

        Only one piece at a time: a process that prints without a pause must not make us deaf to everything else.
        """
        try:
            chunk = os.read(self.output, 65536)
        except BlockingIOError:
            return True
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        if len(self.rest) > LONGEST_LINE:
            lines.append(self.rest)
            self.rest = b""
        for line in lines:
            self.write(line)
        return bool(chunk)

    def rest_is_there(self) -> bool:
        """Whether more output can be read at once."""
        return bool(select.select([self.output], [], [], 0)[0])

    def reap(self) -> None:
        """Take orphans that ended off the process table, but not the engine itself."""
        while (first := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if first.si_pid == self.process.pid:
                return
            os.waitpid(first.si_pid, 0)

    def write(self, line: bytes) -> None:
        """One line into the log. A progress bar redraws its line with carriage returns: only the last state counts."""
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
        if text:
            self.log.emit(log_record(text))

    def mark(self, event: str) -> None:
        """Say in the log where a run begins or ends."""
        self.log.emit(log_record(f"{RUN_MARK} {time.strftime('%Y-%m-%d %H:%M:%S')} {event}"))


def log_record(text: str) -> logging.LogRecord:
    """The only thing that a logging handler takes."""
    return logging.LogRecord("engine", logging.INFO, "", 0, text, None, None)


def die_with_parent(parent: int) -> None:
    """In the new process: SIGKILL when the keeper dies, also when it died before this call; default signals."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if os.getppid() != parent:
        os._exit(1)


def ended(pid: int) -> int | None:
    """The exit code of a child whose threads have all ended, 128 + number for a signal; ``None`` while one goes on.

    The child stays on the process table: nothing blocks here, whatever state it is in.
    """
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else 128 + result.si_status


def end_descendants(engine: int) -> bool:
    """SIGKILL every remaining descendant until all have ended; whether there were others than ``engine``, which has.

    As subreaper we inherit each one whose parent dies before it. So when all our children have ended, and there is none
    more afterwards, nobody is left. They stay on the process table.
    """
    before = {engine}
    while (now := {*children(os.getpid())}) != before or any(ended(pid) is None for pid in now):
        before = now
        for pid in now:
            os.kill(pid, signal.SIGKILL)
        time.sleep(RELIST)
    return now != {engine}


def take_off(rest: float) -> None:
    """Take all children, which have ended, off the process table, after ``rest`` seconds.

    A thread that has ended is gone from the process table before the kernel has cleared up what /proc kept of it. Who
    takes the process off meanwhile spins in the kernel until that is done, and cannot be killed. If the thread had the
    lowest priority, as pollers on a CPU have (:mod:`launcher.local.scheduling`), and the cores are busy, not least with
    this spinning, that took half a minute. The same thread is through within a second if nobody spins.
    """
    time.sleep(rest)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def end_marked(mark: str) -> None:
    """SIGKILL every process whose environment carries this mark, or one that begins with it and a slash.

    For those that we did not inherit: the environment passes to all descendants, whatever session they moved to.
    """
    deadline = time.monotonic() + SWEEP
    while (pids := marked(mark)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def marked(mark: str) -> list[int]:
    """The living processes with this mark; keepers are not among them, they end by themselves."""
    wanted = {f"{MARK}={mark}".encode()}
    prefix = f"{MARK}={mark}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # ended meanwhile, or not ours to look at
                variables = (entry / "environ").read_bytes().split(b"\0")
                is_ours = any(variable in wanted or variable.startswith(prefix) for variable in variables)
                if is_ours and __file__.encode() not in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def children(parent: int) -> list[int]:
    """The pids whose parent is ``parent``, also of those that it has not taken off the process table.

    They count, since a process whose first thread has ended looks like one, while its other threads go on.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                ppid = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
                continue
            if int(ppid) == parent:
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
