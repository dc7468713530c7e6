"""Decision: a measurement as tables for a terminal."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from launcher.measure.bench_shape import Benched
from launcher.measure.report import rows


def table(benched: Benched) -> Iterator[RenderableType]:
    """One below the other."""
    yield Text(f"{benched.target} ({benched.model})", style="bold")
    yield Text(rows.asked(benched))
    latencies = _table("", "mean", "p50", "p90", "p95", "p99")
    for name, _, cells in rows.latencies(benched.figures):
        shown = [Text.assemble(cell.value, (f"\n{cell.bounds}" if cell.bounds else "", "dim")) for cell in cells]
        latencies.add_row(name, *shown)
    yield latencies
    if few := rows.too_few(benched.figures):
        yield Text(few, style="dim")
    rates = _table("", "", "95 % interval")
    for name, cell in rows.rates(benched.figures):
        rates.add_row(name, cell.value, Text(cell.bounds, style="dim"))
    yield rates
    yield Text(rows.objectives(benched.figures.objectives), style="dim")
    others = Table.grid(padding=(0, 2))
    for name, value in (*rows.requests(benched.figures), *rows.engines(benched.counted)):
        others.add_row(name, value)
    yield others
    for note in benched.notes:
        yield Text(f"note: {note}", style="yellow")


def _table(*columns: str) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for number, name in enumerate(columns):
        made.add_column(name, justify="right" if number else "left", no_wrap=True)
    return made
