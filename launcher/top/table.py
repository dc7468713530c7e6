"""Decision: a table that fits: narrow terminals do without its less important columns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

_GAP = 2
_OF_A_REASON = 16
"""Characters of the last column that have to be there."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Headings; ``spare``: those that are left out first, the first of them first."""

    heads: tuple[str, ...]
    spare: tuple[str, ...]
    ends_in_text: bool = False
    """The last one takes what is left and is cut off there."""


def fitting(columns: Columns, rows: Sequence[Sequence[Text]], width: int) -> Table:
    """One line for each row."""
    sizes = {head: max(len(head), *(len(row[index]) for row in rows)) for index, head in enumerate(columns.heads)}
    if columns.ends_in_text:
        last = columns.heads[-1]
        sizes[last] = min(sizes[last], max(len(last), _OF_A_REASON))
    kept = _kept(columns, sizes, width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for head in kept:
        shrinks = columns.ends_in_text and head == columns.heads[-1]
        table.add_column(head, no_wrap=True, overflow="ellipsis", min_width=None if shrinks else sizes[head])
    indices = [columns.heads.index(head) for head in kept]
    for row in rows:
        table.add_row(*(row[index] for index in indices))
    return table


def _kept(columns: Columns, sizes: dict[str, int], width: int) -> Collection[str]:
    kept = list(columns.heads)
    for head in columns.spare:
        if sum(sizes[each] + _GAP for each in kept) - _GAP <= width:
            break
        kept.remove(head)
    return kept
