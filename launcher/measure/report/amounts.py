"""Decision: measured numbers for people."""

import math

from launcher.measure.interval import Interval
from launcher.measure.load import Arrivals, Closed, Load

FEW = "too few"
NO_BOUNDS = "no interval"


def milliseconds(seconds: float) -> str:
    """With as many places as matter."""
    if not math.isfinite(seconds):
        return "–"
    value = seconds * 1000
    return f"{value:,.0f} ms" if abs(value) >= 100 else f"{value:,.1f} ms"


def rate(value: float) -> str:
    """Of something a second."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def percent(share: float) -> str:
    """Of a share."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else "–"


def bounds(of: Interval, unit: str = "ms") -> str:
    """The interval, where there is one."""
    if not (math.isfinite(of.low) and math.isfinite(of.high)):
        return NO_BOUNDS
    told = {"ms": milliseconds, "rate": rate, "share": percent}[unit]
    low, high = (told(value).removesuffix(" ms").removesuffix(" %") for value in (max(0.0, of.low), of.high))
    return f"{low} to {high}"


def load(of: Load) -> str:
    """In words."""
    if isinstance(of, Closed):
        return f"{of.concurrency} at once (closed loop)" if of.concurrency > 1 else "one at a time (closed loop)"
    if of.arrivals is Arrivals.TRACE:
        return "at the times of a trace" + (f", {of.speed:g} times as fast" if of.speed != 1 else "")
    how = "at random times (Poisson)" if of.arrivals is Arrivals.POISSON else "evenly"
    return f"{of.rate:g} a second {how}, open loop"
