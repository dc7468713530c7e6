"""How far things are that take minutes: live bars on a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Bars:
    """One bar for each name."""

    def __init__(self, console: Console, width: int = 12) -> None:
        """``width``: characters of the longest name."""
        self._console = console
        self._width = width
        self._since: float | None = None
        self._tasks: dict[str, TaskID] = {}
        self._bars: Progress | None = None
        self._closed = False

    @property
    def live(self) -> bool:
        """Whether there are bars, which may be shown again and again."""
        return self._console.is_terminal and not self._closed

    def show(self, name: str, completed: float, title: str) -> None:
        """It is so far, between 0 and 1, and does this now."""
        now = time.monotonic()
        self._since = self._since or now
        if not self.live:
            self.line(name, f"{title} ({now - self._since:.0f} s)")
            return
        if self._bars is None:
            self._bars = Progress(
                TextColumn("  {task.description:" + str(self._width) + "}"),
                BarColumn(24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[title]}", markup=False),
                console=self._console,
            )
            self._bars.start()
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=1.0, title=title)
        self._bars.update(self._tasks[name], completed=completed, title=title)

    def line(self, name: str, text: str) -> None:
        """Above the bars, to stay."""
        self._console.print(f"  {name:{self._width}} {text}", markup=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the bars as they are and go on with plain lines."""
        self._closed = True
        if self._bars is not None:
            self._bars.stop()
