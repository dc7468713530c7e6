"""Decision: a row of values as a line of small bars."""

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-=*#"


def sparkline(values: Sequence[float | None], width: int, *, plain: bool = False) -> str:
    """The last ``width`` values between 0 and the greatest; a space where none is known. ``plain``: in ASCII."""
    bars, shown = _PLAIN if plain else _BARS, values[-width:] if width > 0 else ()
    most = max((value for value in shown if value is not None), default=0.0)
    return "".join(" " if value is None else bars[_level(value, most, len(bars))] for value in shown)


def _level(value: float, most: float, levels: int) -> int:
    return min(levels - 1, int(value / most * levels)) if most > 0 else 0
