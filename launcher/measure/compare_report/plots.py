"""Decision: the page's plot."""

import math
from typing import TYPE_CHECKING

from launcher.measure.compare_asked import Compared
from launcher.measure.compare_shape import Verdict
from launcher.plots import BAD, CALM, GOOD, INK, plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {Verdict.BETTER: GOOD, Verdict.WORSE: BAD}


def effects(of: Compared) -> str:
    """Each metric's ratio with its interval; within the grey band is no difference."""
    shown = [
        each for each in of.comparison.effects if math.isfinite(each.ratio.value) and math.isfinite(each.ratio.high)
    ]

    def draw(axes: "Axes") -> None:
        axes.axvspan(1 - of.asked.margin, 1 + of.asked.margin, color=INK, alpha=0.12, linewidth=0)
        axes.axvline(1, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        for row, each in enumerate(shown):
            colour = _COLOURS.get(each.verdict, CALM)
            axes.plot(
                [each.ratio.low, each.ratio.high], [-row, -row], color=colour, linewidth=5, solid_capstyle="round"
            )
            axes.plot([each.ratio.value], [-row], "o", color=colour, markersize=9, markeredgecolor="white")
        axes.set_yticks([-row for row in range(len(shown))], [each.metric.title for each in shown])
        axes.set(ylim=(-len(shown) + 0.4, 0.6), xlabel="B as a multiple of A")

    return plot("effects", "B against A, each metric with its interval", 6.8, 0.9 + 0.4 * max(1, len(shown)), draw)
