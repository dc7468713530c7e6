"""Stops a deployment from outside."""

import os
import signal
import time

from launcher.errors import RunDirectoryError, StateError
from launcher.local.run_directory import RunDirectory

_PATIENCE = 20.0
"""Seconds beyond those that the launcher says it needs."""


def stop(directory: RunDirectory) -> bool:
    """Ask the launcher to stop and wait for it; whether one ran."""
    launcher = directory.holder()
    if launcher is None:
        return False
    try:
        os.kill(launcher, signal.SIGTERM)
    except ProcessLookupError:  # it ended this moment
        return True
    except PermissionError as exc:
        raise RunDirectoryError(f"launcher {launcher} belongs to another user: stop it as that user") from exc
    deadline = time.monotonic() + _PATIENCE + _needed(directory, launcher)
    while directory.holder() == launcher:
        if time.monotonic() > deadline:
            raise RunDirectoryError(
                f"launcher {launcher} does not stop; `kill -9 {launcher}` ends it and everything it started"
            )
        time.sleep(0.1)
    return True


def _needed(directory: RunDirectory, launcher: int) -> float:
    try:
        deployment = directory.read_state()
    except StateError:
        return 0.0
    return deployment.stops_within if deployment is not None and deployment.launcher_pid == launcher else 0.0
