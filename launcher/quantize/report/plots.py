"""Decision: the report's plots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from launcher.plots import BAD, CALM, GOOD, INK, WARM, plot
from launcher.quantize.gate.shape import Check, Figure, Speed
from launcher.quantize.outcome import UnitScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 20
"""Units of the sensitivity plot."""


def check(number: int, each: Check) -> str:
    """An interval against its limit: green is where it should be."""
    figure, is_higher_better = each.figure, each.unit == "share"
    span = max(abs(value - each.limit) for value in (figure.value, figure.low, figure.high)) or abs(each.limit) or 1.0
    low, high = each.limit - 1.3 * span, each.limit + 1.3 * span
    if each.unit != "points":
        low = max(0.0, low)
    if is_higher_better:
        high = min(1.0, high)

    def draw(axes: "Axes") -> None:
        sides = ((low, each.limit), (each.limit, high))
        for (start, end), is_good in zip(sides, (not is_higher_better, is_higher_better), strict=True):
            axes.axvspan(start, end, color=GOOD if is_good else BAD, alpha=0.16, linewidth=0)
        axes.axvline(each.limit, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.plot([figure.low, figure.high], [0, 0], color=CALM, linewidth=5, solid_capstyle="round")
        axes.plot([figure.value], [0], "o", color=CALM, markersize=9, markeredgecolor="white", markeredgewidth=1.5)
        axes.annotate("limit", (each.limit, 0.72), (4, 0), textcoords="offset points", fontsize=8.5)
        axes.set(xlim=(low, high), ylim=(-1, 1), yticks=[])
        if each.unit == "share":
            axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")
        axes.spines["left"].set_visible(False)

    return plot(f"check{number}", f"{each.name}, its interval and its limit", 4.6, 0.75, draw)


def speed(measured: Speed) -> str:
    """How many times as fast, under load and alone."""
    rows = [("Many requests at once", measured)]
    if measured.alone is not None:
        rows.append(("One at a time", measured.alone))
    names = ("first token", "each further token", "tokens a second")

    def draw(axes: "Axes") -> None:
        axes.axvline(1, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        for shift, ((title, told), colour) in enumerate(zip(rows, (CALM, WARM), strict=False)):
            for at, each in enumerate((_inverse(told.ttft), _inverse(told.tpot), told.throughput)):
                height = -at - 0.22 * shift + 0.11 * (len(rows) - 1)
                axes.plot([each.low, each.high], [height] * 2, color=colour, linewidth=4, solid_capstyle="round")
                axes.plot([each.value], [height], "o", color=colour, markersize=8, label=None if at else title)
        axes.set_yticks([0, -1, -2], names)
        axes.set(ylim=(-2.6, 0.6), xlabel="slower  ◂  times as fast as the original  ▸  faster")
        left, right = axes.get_xlim()
        axes.set_xlim(min(left, 0.8), max(right, 1.25))
        if len(rows) > 1:
            axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return plot("speed", "Speed against the original", 6.8, 2.1, draw)


def sizes(before: int, after: int) -> str:
    """Of the weights, in two bars."""

    def draw(axes: "Axes") -> None:
        axes.barh([1, 0], [before / 1e9, after / 1e9], color=[INK, CALM], alpha=0.75, height=0.6)
        for at, size in ((1, before), (0, after)):
            axes.annotate(_size(size), (size / 1e9, at), (5, 0), textcoords="offset points", va="center")
        axes.set_yticks([1, 0], ["original, 16 bits", "quantized"])
        axes.set(xlim=(0, max(before, after) / 1e9 * 1.2), xticks=[])
        axes.spines["bottom"].set_visible(False)

    return plot("sizes", f"Size: {_size(before)} before, {_size(after)} after", 5.6, 0.95, draw)


def sensitivity(units: Sequence[UnitScore], kept: Sequence[str]) -> str:
    """The most sensitive units; those that were kept stand out."""
    shown = units[:_SHOWN]
    scores = [each.fisher if each.kl is None else each.kl for each in shown]

    def draw(axes: "Axes") -> None:
        rows = range(len(shown))
        colours = [WARM if each.name in kept else CALM for each in shown]
        bars = axes.barh(rows, scores, color=colours, height=0.72)
        for bar, each in zip(bars, shown, strict=True):
            bar.set_alpha(0.45 if each.kl is None else 0.95)
        axes.set_yticks(rows, [_short(each.name) for each in shown])
        axes.invert_yaxis()
        axes.set(xlabel="KL divergence in nats when this unit alone is quantized")
        if min(scores) > 0 and max(scores) > 30 * min(scores):
            axes.set_xscale("log")

    title = "The most sensitive units, the worst first"
    return plot("sensitivity", title, 6.8, 0.7 + 0.23 * len(shown), draw)


def records(kls: Sequence[float], limit: float) -> str:
    """How the held-out records differ among themselves."""
    from matplotlib.ticker import MaxNLocator

    mean = sum(kls) / len(kls)

    def draw(axes: "Axes") -> None:
        axes.hist(kls, bins=min(24, max(6, len(kls) // 3)), color=CALM, alpha=0.8)
        axes.axvline(mean, color=INK, linewidth=1.6)
        axes.axvline(limit, color=BAD, linewidth=1.4, linestyle=(0, (4, 3)))
        for at, text, is_left in ((mean, "mean", mean < limit), (limit, "limit of the mean", limit <= mean)):
            align = "right" if is_left else "left"
            axes.annotate(text, (at, 1.02), xycoords=("data", "axes fraction"), fontsize=8.5, ha=align)
        left, right = axes.get_xlim()
        room = 0.25 * max(right, limit)
        axes.set(
            xlim=(min(0.0, left), max(right, limit) + room), xlabel="KL divergence of a record, nats", ylabel="records"
        )
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    return plot("records", "Held-out records by how much their answers differ", 6.8, 2.3, draw)


def _inverse(figure: Figure) -> Figure:
    return Figure(*(1 / max(value, 1e-9) for value in (figure.value, figure.high, figure.low)))


def _short(name: str) -> str:
    return name.removeprefix("model.").removeprefix("layers.")


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
