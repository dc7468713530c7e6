"""Stops a deployment from outside."""

import os
import signal
import time

from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory

_PATIENCE = 30.0
"""Seconds; a launcher stops everything within 10."""


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
    deadline = time.monotonic() + _PATIENCE
    while directory.holder() == launcher:
        if time.monotonic() > deadline:
            raise RunDirectoryError(
                f"launcher {launcher} does not stop; `kill -9 {launcher}` ends it and everything it started"
            )
        time.sleep(0.1)
    return True
