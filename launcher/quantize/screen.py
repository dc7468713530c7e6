"""What a person sees while a model is quantized."""

from rich.console import Console

from launcher.bars import Bars

_NAME = "quantize"


class Screen:
    """A bar on a terminal, elsewhere a line for each thing that begins."""

    def __init__(self, console: Console) -> None:
        self._console, self._bars, self._title = console, Bars(console, len(_NAME)), ""

    def progress(self, title: str, done: int, of: int) -> None:
        """So many of so many steps of what ``title`` names."""
        if self._bars.live or title != self._title:
            self._bars.show(_NAME, done / of if of else 0.0, title)
        self._title = title

    def note(self, text: str) -> None:
        """Something to know."""
        self._console.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bars.close()
