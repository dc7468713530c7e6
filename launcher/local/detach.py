"""Runs `launcher up` in the background and follows it until it is ready."""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from rich.console import Console

from launcher.errors import StateError
from launcher.local.run_directory import RunDirectory

_POLL = 0.2


def start(
    profile: str, settings: Sequence[str], directory: RunDirectory, console: Console, skip: Sequence[str] = ()
) -> int:
    """Start it in a session of its own, show its progress; 0 once it is ready, else its exit code."""
    directory.create()
    command = [sys.executable, "-P", "-m", "launcher", "up", profile, "--run-dir", str(directory.path)]
    command += [part for setting in settings for part in ("--set", setting)]
    command += [part for layer in skip for part in ("--skip", str(layer))]
    with directory.supervisor_log.open("a") as output:
        begin = output.tell()
        background = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    with directory.supervisor_log.open() as progress:
        progress.seek(begin)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
        try:
            while background.poll() is None and not _is_ready(directory, background.pid):
                console.print(progress.read(), end="", markup=False, soft_wrap=True)
                time.sleep(_POLL)
        except KeyboardInterrupt:
            background.terminate()
            background.wait()
            raise
        console.print(progress.read(), end="", markup=False, soft_wrap=True)
    if background.returncode is not None:
        return background.returncode or 1
    console.print(
        f"It runs on (launcher pid {background.pid}): see `launcher status`, stop it with `launcher down`.",
        markup=False,
        soft_wrap=True,
    )
    return 0


def _is_ready(directory: RunDirectory, launcher: int) -> bool:
    try:
        deployment = directory.read_state()
    except StateError:  # of an earlier launcher, until this one writes its own
        return False
    return deployment is not None and deployment.launcher_pid == launcher and deployment.ready
