"""Plots as SVG that a page holds: its own text, colours of the page, the same bytes for the same figures."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"
"""Stands for the page's own colour of text."""
GOOD, BAD, CALM, WARM = "#2e9e5b", "#d64545", "#4a7fd6", "#e0912f"


def plot(name: str, title: str, width: float, height: float, draw: "Callable[[Axes], None]") -> str:
    """What ``draw`` draws, so many inches large; ``name`` is unique on the page, ``title`` for who cannot see it."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with _settings(name):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        text = StringIO()
        FigureCanvasSVG(figure)  # becomes the figure's
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _inline(text.getvalue(), name, title)


@contextmanager
def _settings(name: str) -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(
        {
            "svg.hashsalt": name,
            "svg.fonttype": "none",  # text stays text, in the page's font
            "font.family": "sans-serif",
            "font.size": 9.5,
            "figure.facecolor": "none",
            "savefig.facecolor": "none",
            "axes.facecolor": "none",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "text.color": INK,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    ):
        yield


def _inline(text: str, name: str, title: str) -> str:
    """As an element of a page: no prologue, ids that no other plot has, and a name."""
    body = text[text.index("<svg") :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#|(?<=href=\")#", lambda found: f"{found.group()}{name}-", body)
    body = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font-size: \1px", body)
    body = body.replace(INK, "currentColor")
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{title}" ', body, count=1).strip()
