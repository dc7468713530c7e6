"""Decision: the report's plots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from launcher.measure.figures_shape import Figures, Span
from launcher.measure.rates import output, slices
from launcher.measure.sample import Sample
from launcher.plots import BAD, CALM, GOOD, INK, WARM, plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 2000
"""Points of a plot; more make a page of megabytes and look the same."""


def distribution(name: str, title: str, values: Sequence[float], objective: float | None) -> str:
    """How many answers took at most so long; green is what is within the objective."""
    shown = sorted(values)[:: max(1, len(values) // _MOST)]
    times = [1000 * value for value in shown]
    shares = [100 * (number + 1) / len(shown) for number in range(len(shown))]

    def draw(axes: "Axes") -> None:
        axes.step(times, shares, where="post", color=CALM, linewidth=2)
        for percent in (50, 90, 99):
            axes.axhline(percent, color=INK, linewidth=0.6, alpha=0.35)
        right = max(times[-1], 1000 * objective * 1.1 if objective and 1000 * objective < 3 * times[-1] else 0.0)
        axes.set(
            xlim=(0, right * 1.03), ylim=(0, 101), xlabel=f"{title}, ms", ylabel="% of answers", yticks=[50, 90, 99]
        )
        if objective and 1000 * objective <= right:
            axes.axvspan(0, 1000 * objective, color=GOOD, alpha=0.12, linewidth=0)
            axes.axvspan(1000 * objective, right * 1.03, color=BAD, alpha=0.12, linewidth=0)
            axes.axvline(1000 * objective, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))

    return plot(name, f"{title}: share of answers by time", 4.6, 2.3, draw)


def over_time(samples: Sequence[Sample], figures: Figures) -> str:
    """Output tokens a second and TTFT, from the start of the run; the warm-up is grey."""
    span = figures.span
    whole = [each for each in samples if each.error is None]
    end = max((each.sent + each.total for each in samples), default=span.end)
    all_of_it = Span(0.0, max(end, 1e-3))
    speeds = slices(whole, all_of_it, output)
    told = [(each.sent, 1000 * each.ttft) for each in whole if each.ttft is not None][:: max(1, len(whole) // _MOST)]
    failed = [each.sent for each in samples if each.error is not None][:_MOST]

    def draw(axes: "Axes") -> None:
        middles = [all_of_it.seconds * (number + 0.5) / len(speeds) for number in range(len(speeds))]
        axes.plot(middles, speeds, color=CALM, linewidth=2)
        axes.set(
            xlim=(0, all_of_it.end), xlabel="seconds from the start of the run", ylim=(0, 1.15 * max(speeds or [1]))
        )
        axes.set_ylabel("output tokens a second", color=CALM)
        for start, stop in ((0.0, span.start), (span.end, all_of_it.end)):
            if stop > start:
                axes.axvspan(start, stop, color=INK, alpha=0.1, linewidth=0)
        other = axes.twinx()
        other.spines["right"].set_visible(True)
        other.plot(*zip(*told, strict=True), "o", color=WARM, markersize=3, alpha=0.6, linewidth=0)
        other.set_ylim(0, 1.15 * max(value for _, value in told))
        other.set_ylabel("TTFT, ms", color=WARM)
        other.plot(failed, [0] * len(failed), "x", color=BAD, markersize=6, clip_on=False)

    return plot("over-time", "Output tokens a second and TTFT over the time of the run", 8.2, 2.6, draw)
