"""Decision: numbers in a terminal. What is not known is a dash."""

from collections.abc import Iterable

UNKNOWN = "-"


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def number(value: float | None) -> str:
    """Of about three digits."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A share of 0 to 1."""
    return UNKNOWN if value is None else f"{value:.0%}"


def seconds(value: float | None) -> str:
    """In milliseconds where that reads better."""
    if value is None:
        return UNKNOWN
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
