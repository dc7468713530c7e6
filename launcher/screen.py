"""What a person sees while something is at work for minutes."""

from rich.console import Console

from launcher.bars import Bars


class Screen:
    """A bar on a terminal, elsewhere a line for each thing that begins."""

    def __init__(self, console: Console, name: str) -> None:
        self._console, self._bars, self._name, self._title = console, Bars(console, len(name)), name, ""

    def progress(self, title: str, done: int, of: int) -> None:
        """So many of so many steps of what ``title`` names; 0 of 0: just to be read."""
        if of == 0 and self._bars.live:
            self._bars.line(self._name, title)
        elif self._bars.live or title != self._title:
            self._bars.show(self._name, done / of if of else 0.0, title)
        self._title = title

    def note(self, text: str) -> None:
        """Something to know."""
        self._console.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bars.close()
