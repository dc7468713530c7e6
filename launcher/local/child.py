"""One process of the deployment, started through its keeper."""

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launcher.local import keeper
from launcher.local.keeper import MARK, end_marked

KEEPER = str(Path(keeper.__file__).absolute())
LOG_BYTES = 16 * 2**20
LOG_FILES = 3
KEEPER_MARGIN = keeper.REST + 1.0
"""Seconds beyond the grace that a keeper has to end itself."""
LAST_STEPS = keeper.REST + 2.0
"""Seconds that a keeper may go on once all that it kept has ended; longer, and the kernel keeps it from its end."""

KEEPS_ENVIRONMENT = "SPT_NOENV"
"""vLLM gives its processes titles. Unless setproctitle is told this, it writes them over environment and mark."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and where its output goes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment."""
    log: Path
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    mark: str
    """``<deployment>/<instance>``, unique to this instance; its processes carry it in their environment."""


class Child:
    """A running process with its keeper. Create it with :meth:`start`."""

    def __init__(self, process: asyncio.subprocess.Process, pid: int | None, command: Command) -> None:
        self._process = process
        self._command = command
        self.pid = pid
        """Of the program itself; ``None`` when it could not be started."""
        self.keeper_pid = process.pid
        assert process.stdout is not None
        self._report = asyncio.ensure_future(process.stdout.readline())

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
                env={**command.env, MARK: command.mark, KEEPS_ENVIRONMENT: "1"},
                process_group=0,
            )
        assert process.stdout is not None
        try:
            first_line = await process.stdout.readline()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        return cls(process, int(first_line) if first_line else None, command)

    async def wait(self) -> int:
        """Until the program and all that it started are gone; its exit code, 128 + number for a signal.

        The keeper is gone, too, unless it hangs in the kernel: what it kept has ended, and nothing waits for it.
        """
        if report := await asyncio.shield(self._report):
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_STEPS):
                    await self._process.wait()
            return int(report)
        code = await self._process.wait()
        if code < 0:  # somebody killed the keeper: the kernel ended the program, its children are ours to end
            await asyncio.to_thread(end_marked, self._command.mark)
            return 128 - code
        return code

    def hurry(self) -> None:
        """Ask the program again to end."""
        if self._process.returncode is None:
            self._process.terminate()

    async def stop(self) -> int:
        """Ask the program to end, wait for it, SIGKILL what is left after the grace; its exit code."""
        if self._process.returncode is None:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)  # a keeper that was stopped must see it
        try:
            async with asyncio.timeout(self._command.grace + KEEPER_MARGIN):
                await self._process.wait()
        except TimeoutError:  # the keeper itself hangs
            self._process.kill()
        return await self.wait()
