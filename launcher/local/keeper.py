"""Keeps one process of the deployment: pumps its output into a rotating log and never leaves a survivor.

Runs as a program of its own between launcher and engine, so that nothing outlives the launcher, not even when that is
killed with SIGKILL, and nothing outlives an engine's main process, not even its grandchildren:

- it is a *subreaper*: orphaned descendants become its children, so it finds and ends them all by pid;
- its standard input is a pipe held by the launcher: end of file means the launcher is gone;
- the engine's main process gets SIGKILL from the kernel should the keeper itself be killed.

Prints one line, the engine's pid, and exits with the engine's exit code (128 + signal for a signal).
Standard library only, and started without site-packages: one per instance should cost little. Linux only.
"""

import argparse
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
        self.log.emit(log_record(f"{RUN_MARK} {time.strftime('%Y-%m-%d %H:%M:%S')} pid {self.process.pid} started"))
        watched = {self.output, self.wakeup, 0}
        while self.process.poll() is None:
            timeout = None if self.kill_at is None else max(0.0, self.kill_at - time.monotonic())
            ready, _, _ = select.select(watched, [], [], timeout)
            if self.output in ready and not self.pump():
                watched.discard(self.output)
            if self.wakeup in ready and not {*os.read(self.wakeup, 64)} <= {signal.SIGCHLD}:
                self.stop(self.grace)
            if 0 in ready and not os.read(0, 64):
                watched.discard(0)
                self.stop(min(self.grace, ORPHAN_GRACE))
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self.process.kill()
        end_descendants()
        self.pump()
        self.write(self.rest)
        code = self.process.returncode
        code = code if code >= 0 else 128 - code
        self.log.emit(log_record(f"{RUN_MARK} {time.strftime('%Y-%m-%d %H:%M:%S')} ended with {code}"))
        return code

    def stop(self, grace: float) -> None:
        """Ask the process to end; SIGKILL follows after ``grace`` seconds. Asked again, only the sooner end counts."""
        kill_at = time.monotonic() + grace
        self.kill_at = min(kill_at, self.kill_at or kill_at)
        self.process.terminate()

    def pump(self) -> bool:
        """Write what the process printed so far; ``False`` at the end of its output."""
        while True:
            try:
                chunk = os.read(self.output, 65536)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            for line in lines:
                self.write(line)

    def write(self, line: bytes) -> None:
        """One line into the log. A progress bar redraws its line with carriage returns: only the last state counts."""
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
        if text:
            self.log.emit(log_record(text))


def log_record(text: str) -> logging.LogRecord:
    """The only thing that a logging handler takes."""
    return logging.LogRecord("engine", logging.INFO, "", 0, text, None, None)


def die_with_parent(parent: int) -> None:
    """In the new process: SIGKILL when the keeper dies, also when it died before this call; default signals."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if os.getppid() != parent:
        os._exit(1)


def end_descendants() -> None:
    """SIGKILL every remaining descendant; as subreaper we inherit each one whose parent dies before it."""
    while True:
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children(parent: int) -> list[int]:
    """The pids whose parent is ``parent`` and that can still be signalled."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, ppid = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
                continue
            if int(ppid) == parent and state != "Z":
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
