"""What a person sees while a release becomes ready or ends, and of what an upgrade changes."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from launcher.bars import Bars
from launcher.cluster.difference import Change
from launcher.cluster.progress import Doing, State
from launcher.cluster.trouble import Trouble

_NAMES = 36
"""Characters of a pod's name, mostly."""
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class WaitingScreen:
    """A :class:`launcher.cluster.wait.Screen`: bars on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(console, _NAMES)
        self._console = console
        self._seen: dict[str, Doing] = {}

    def doing(self, now: Sequence[Doing]) -> None:
        """Those that do something else than before."""
        for each in now:
            before = self._seen.get(each.pod)
            # A line for each second would be too many.
            changed = before is None or before.step != each.step or (self._bars.live and before.text != each.text)
            if changed and each.state is not State.ENDED:
                self._bars.show(each.pod, each.fraction, each.text)
        gone = self._seen.keys() - {each.pod for each in now}
        for pod in sorted(gone):
            if self._seen[pod].state is not State.ENDED:
                self._bars.show(pod, 1.0, "gone")
        self._seen = {each.pod: each for each in now}

    def trouble(self, found: Trouble) -> None:
        """Something new is wrong; what ends the waiting is told once more at its end."""
        self._bars.line(found.of, f"! {found.why}. {found.fix}")

    def note(self, text: str) -> None:
        """Something to know."""
        self._console.print(f"note: {text}", markup=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the bars as they are."""
        self._bars.close()


def changes(console: Console, found: Sequence[Change]) -> None:
    """Each object, and how it changes."""
    for each in found:
        console.print(Text(f"{each.sign} {each.of}", style="bold"), soft_wrap=True)
        for line in each.lines:
            console.print(Text(f"    {line}", style=_COLOURS.get(line[:1], "")), soft_wrap=True)
