"""One process of the deployment, started through its keeper."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.local import keeper

KEEPER = str(Path(keeper.__file__).absolute())
LOG_BYTES = 16 * 2**20
LOG_FILES = 3
KEEPER_MARGIN = 1.0
"""Seconds beyond the grace that a keeper has to end itself."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and where its output goes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment."""
    log: Path
    grace: float
    """Seconds between SIGTERM and SIGKILL."""


class Child:
    """A running process with its keeper. Create it with :meth:`start`."""

    def __init__(self, process: asyncio.subprocess.Process, pid: int | None, grace: float) -> None:
        self._process = process
        self._grace = grace
        self.pid = pid
        """Of the program itself; ``None`` when it could not be started."""
        self.keeper_pid = process.pid

    @classmethod
    async def start(cls, command: Command) -> "Child":
        """Start keeper and program."""
        program = [
            *(sys.executable, "-I", "-S", KEEPER, f"--log={command.log}"),
            *(f"--log-bytes={LOG_BYTES}", f"--log-files={LOG_FILES}", f"--grace={command.grace}", "--", *command.argv),
        ]
        # A process group of its own keeps the terminal's Ctrl+C from the engines: they stop in our order. Not a session
        # of its own: Linux divides the CPU between sessions first (autogroup), and priorities count only within one.
        with command.log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *program,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=dict(command.env),
                process_group=0,
            )
        assert process.stdout is not None
        try:
            first_line = await process.stdout.readline()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        return cls(process, int(first_line) if first_line else None, command.grace)

    async def wait(self) -> int:
        """Until the program and all that it started are gone; its exit code, 128 + number for a signal."""
        code = await self._process.wait()
        if code < 0:  # somebody killed the keeper: the kernel ended the program, its children are ours to end
            end_group(self.keeper_pid)
            return 128 - code
        return code

    async def stop(self) -> int:
        """Ask the program to end, wait for it, SIGKILL what is left after the grace; its exit code."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(self._grace + KEEPER_MARGIN):
                await self._process.wait()
        except TimeoutError:  # the keeper itself hangs, e.g. stopped by SIGSTOP
            end_group(self.keeper_pid)
        return await self.wait()


def end_group(process_group: int) -> None:
    """SIGKILL what is left of a process group."""
    try:
        os.killpg(process_group, signal.SIGKILL)
    except ProcessLookupError:  # nothing left
        return
