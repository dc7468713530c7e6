"""Decision: numbers for people."""

from launcher.quantize.gate.shape import Check, Figure


def size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def amount(number: float, unit: str) -> str:
    """A figure with its unit."""
    if unit == "share":
        return f"{100 * number:.1f} %"
    return f"{number:.2f} points" if unit == "points" else f"{number:.3f} {unit}"


def value(check: Check) -> str:
    """What was measured."""
    return amount(check.figure.value, check.unit)


def times(figure: Figure) -> str:
    """Of a ratio."""
    return f"× {figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})"
