"""Shows a deployment until Ctrl+C."""

import time

from rich.console import Console
from rich.live import Live

from launcher.amounts import duration
from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory
from launcher.top.frame import Screen, frame
from launcher.top.look import gather
from launcher.top.overview import Overview

_PAUSE = 2.0
"""Seconds between two looks."""
_STEP = 0.1
"""Seconds after which a window of another size is noticed."""


def title(directory: RunDirectory) -> str:
    """What is looked at; raises :class:`RunDirectoryError` when nothing runs."""
    deployment = directory.running()
    return f"{deployment.profile} at {deployment.address}"


def screen_of(console: Console, *, whole: bool) -> Screen:
    """With ``whole``, what is shown may be longer than the terminal."""
    plain = not console.encoding.lower().startswith("utf")
    return Screen(console.width, None if whole else console.height, plain)


def watch(directory: RunDirectory, console: Console) -> None:
    """Look every two seconds; what does not answer is said, and what was known last stays."""
    named = title(directory)
    known: Overview | None = None
    since = time.monotonic()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                known, _ = gather(directory)
                since, problem = time.monotonic(), ""
            except RunDirectoryError as exc:
                problem = f"For {duration(time.monotonic() - since)}: {exc}"
            until = time.monotonic() + _PAUSE
            drawn: tuple[int, int] | None = None
            while time.monotonic() < until:
                if drawn != console.size:
                    drawn = console.size
                    live.update(frame(named, known, problem, screen_of(console, whole=False)), refresh=True)
                time.sleep(_STEP)
