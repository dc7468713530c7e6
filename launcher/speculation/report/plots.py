"""Decision: the page's plots."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from launcher.plots import CALM, GOOD, INK, WARM, plot
from launcher.speculation.evidence import Choice, Evidence, Origin, Point
from launcher.speculation.report.rows import ordered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (CALM, WARM, "#8f5fc7", "#3aa6a0")


def goodput(evidence: Evidence) -> list[str]:
    """Goodput by K, one plot for each tested load."""
    return [_load(evidence, each) for each in evidence.choices]


def _load(evidence: Evidence, choice: Choice) -> str:
    here = [
        each
        for each in ordered(evidence.points)
        if each.concurrency == choice.concurrency and each.origin is Origin.MEASURED
    ]
    temperatures = sorted({each.temperature for each in here})
    methods = sorted({each.method for each in here if each.k})
    lines = [(method, temperature) for method in methods for temperature in temperatures]

    def draw(axes: "Axes") -> None:
        for number, (method, temperature) in enumerate(lines):
            mine = [each for each in here if each.temperature == temperature and each.method in (method, "off")]
            label = method if len(temperatures) == 1 else f"{method}, temperature {temperature:g}"
            _line(axes, mine, _COLOURS[number % len(_COLOURS)], label)
        axes.axvline(choice.k, color=GOOD, linewidth=7, alpha=0.25)
        ks = sorted({each.k for each in here})
        axes.set(xticks=ks, xlabel="K", ylabel="tokens/s", ylim=(0, None), title=f"{choice.concurrency} at once")
        axes.title.set_color(INK)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8.5)

    title = f"Goodput by K with {choice.concurrency} requests at once; chosen is K {choice.k}"
    return plot(f"load{choice.concurrency}", title, 4.2, 2.5, draw)


def _line(axes: "Axes", points: Sequence[Point], colour: str, label: str) -> None:
    points = sorted(points, key=lambda each: each.k)
    values = [each.goodput.value for each in points]
    reach = [
        (each.goodput.high - each.goodput.low) / 2 if math.isfinite(each.goodput.high - each.goodput.low) else 0.0
        for each in points
    ]
    axes.errorbar([each.k for each in points], values, yerr=reach, color=colour, marker="o", capsize=3, label=label)
