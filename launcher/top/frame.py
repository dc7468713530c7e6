"""Decision: an overview -> what fits on a terminal of so many lines."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from launcher.top.numbers import mean, number, percent, seconds
from launcher.top.overview import Overview, Point
from launcher.top.rows import (
    FAILURES,
    HEALTHS,
    INSTANCES,
    PAIRS,
    failure_row,
    instance_row,
    pair_row,
    worst_first,
)
from launcher.top.sparkline import sparkline
from launcher.top.table import fitting

_REASONS = 3
_LEAST = 3
"""Lines of a table that are worth a heading."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Where it is shown, in characters."""

    width: int
    height: int | None
    """``None``: as long as it gets."""
    plain: bool = False
    """The terminal knows ASCII only."""


def frame(title: str, overview: Overview | None, problem: str, screen: Screen) -> RenderableType:
    """``title``: what is looked at; ``problem``: why nothing newer is known, if so."""
    head: list[RenderableType] = [_head(title, overview)]
    if problem:
        head.append(Text(problem, style="bold red", overflow="ellipsis", no_wrap=True))
    if overview is None:
        return Group(*head)
    for reason in overview.reasons[:_REASONS]:
        head.append(Text(f"  {reason}", overflow="ellipsis", no_wrap=True))
    if (more := len(overview.reasons) - _REASONS) > 0:
        head.append(Text(f"  and {more} more", style="dim"))
    head += [Text(), *_rates(overview, screen)]
    left = None if screen.height is None else screen.height - len(head)
    return Group(*head, *_tables(overview, screen, left))


def _head(title: str, overview: Overview | None) -> Table:
    row = Table.grid(expand=True)
    row.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
    row.add_column(justify="right", no_wrap=True)
    word = Text("no answer yet", style="dim")
    if overview is not None:
        word = Text.assemble((overview.health.upper(), HEALTHS.get(overview.health, "bold")))
        word.append(f"  {time.strftime('%H:%M:%S', time.localtime(overview.at))}", "dim")
    row.add_row(Text(title, style="bold"), word)
    return row


def _rates(overview: Overview, screen: Screen) -> list[Text]:
    """Of the last minute; what is the case now, as far as points of some seconds tell."""
    points = [point for point in overview.history.points if point.at > overview.at - 60]
    now = points[-1] if points else None

    def of(name: str) -> float | None:
        return mean([getattr(point, name) for point in points])

    failed = of("failed_per_second")
    first = Text.assemble(
        *("Last minute: Requests ", (f"{number(of('requests_per_second'))}/s", "bold"), "   Failed "),
        (f"{number(failed)}/s", "bold red" if failed else "bold"),
        *("   Output ", (f"{number(of('output_tokens_per_second'))} tokens/s", "bold")),
    )
    second = Text.assemble(
        *("             Through PD ", (percent(of("pd_share")), "bold"), "   KV received "),
        *((percent(of("kv_received_share")), "bold"), "   Acceptance ", (percent(of("acceptance_rate")), "bold")),
    )
    third = Text.assemble(
        *("Now:         In flight ", (number(None if now is None else now.in_flight), "bold")),
        *("   Waiting ", (number(None if now is None else now.waiting), "bold"), "   Last "),
    )
    told = [first, second, _ttft(third, overview.history.points, screen)]
    for line in told:
        line.no_wrap, line.overflow = True, "ellipsis"
    return told


def _ttft(before: Text, points: Sequence[Point], screen: Screen) -> Text:
    """The last that is known, and the history in what is left of the line."""
    last = next((point for point in reversed(points) if point.ttft_p95 is not None), None)
    line = Text.assemble(
        *(before, "TTFT p95 ", (seconds(None if last is None else last.ttft_p95), "bold"), "  p50 "),
        *((seconds(None if last is None else last.ttft_p50), "bold"), "  "),
    )
    drawn = sparkline([point.ttft_p95 for point in points], screen.width - len(line) - 1, plain=screen.plain)
    return line.append(drawn, "cyan")


def _tables(overview: Overview, screen: Screen, left: int | None) -> list[RenderableType]:
    """Instances, pairs and failures: the first ones get what they need as long as the others keep some lines."""
    instances = [instance_row(each) for each in overview.instances]
    pairs = [pair_row(each, overview.at) for each in worst_first(overview.pairs)]
    failures = [failure_row(each) for each in overview.failures]
    parts = [
        (INSTANCES, instances),
        (PAIRS, pairs),
        (FAILURES, failures),
    ]
    found: list[RenderableType] = []
    for index, (columns, rows) in enumerate(parts):
        if not rows:
            continue
        later = sum(min(len(rest), _LEAST) + 2 for _, rest in parts[index + 1 :] if rest)
        room = len(rows) if left is None else max(0, min(len(rows), left - 2 - later))
        if room < min(2, len(rows)):
            continue
        shown = rows if room == len(rows) else rows[: room - 1]
        found += [Text(), fitting(columns, shown, screen.width)]
        if len(shown) < len(rows):
            found.append(Text(f"and {len(rows) - len(shown)} more", style="dim"))
        left = None if left is None else left - 2 - room
    return found
