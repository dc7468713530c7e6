"""Runs the real launcher as a process, with fake engines, and looks at what is left of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

REPOSITORY = Path(__file__).parents[3]
PATIENCE = 30.0
"""Seconds until a wait gives up and the test fails."""


class Launched:
    """A `launcher` command that runs."""

    def __init__(self, arguments: list[str], run_directory: Path, environ: Mapping[str, str], output: Path) -> None:
        self.run_directory = run_directory
        self._output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "launcher", *arguments, "--run-dir", str(run_directory)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environ},
                process_group=0,
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def state(self) -> dict[str, Any]:
        """state.json, empty before it is written."""
        try:
            return json.loads((self.run_directory / "state.json").read_text())
        except FileNotFoundError:
            return {}

    def instance(self, name: str) -> dict[str, Any]:
        """One instance's part of the state."""
        return next((i for i in self.state().get("instances", []) if i["name"] == name), {"state": "none"})

    def wait_ready(self, patience: float = PATIENCE) -> None:
        """Until the deployment is ready; fails with the output when the launcher ended instead."""
        self.wait(lambda: self.state().get("launcher_pid") == self.process.pid and self.state()["ready"], patience)

    def wait(self, condition: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Until a condition holds while the launcher runs."""

        def holds() -> bool:
            assert self.process.poll() is None, f"the launcher ended with {self.process.returncode}:\n{self.output}"
            return condition()

        wait_until(holds, lambda: self.output, patience)

    def family(self) -> list[psutil.Process]:
        """The launcher and all processes below it now."""
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def send(self, number: int) -> None:
        """A signal to the launcher alone."""
        os.kill(self.process.pid, number)

    def result(self) -> int:
        """The exit code, once it ends."""
        return self.process.wait(PATIENCE)


def wait_until(
    condition: Callable[[], bool], describe: Callable[[], str] = lambda: "", patience: float = PATIENCE
) -> None:
    """Until a condition holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience} s in vain\n{describe()}"
        time.sleep(0.02)


def survivors(family: list[psutil.Process], within: float = 10.0) -> list[psutil.Process]:
    """Those of the processes that still live after this time; zombies that wait for their parent do not live."""
    psutil.wait_procs(family, timeout=within)
    return [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@contextlib.contextmanager
def launched(arguments: list[str], run_directory: Path, environ: Mapping[str, str], output: Path) -> Iterator[Launched]:
    """A running launcher that is gone afterwards, whatever the test did."""
    running = Launched(arguments, run_directory, environ, output)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            family = running.family()
            running.send(signal.SIGKILL)
            running.process.wait()
            assert not survivors(family)
