"""How tables look."""

from rich.console import Console
from rich.table import Table


def print_table(table: Table) -> None:
    """Wrapped to fit a terminal; in a pipe or a file, each row is one line."""
    console = Console(highlight=False)
    console.print(table) if console.is_terminal else Console(highlight=False, width=10_000).print(table)


def new_table(*columns: str) -> Table:
    """Without lines, so that it reads well in a log too."""
    return Table(*columns, box=None, pad_edge=False, header_style="bold")
