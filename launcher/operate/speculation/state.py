"""Shape: what the controller remembers, and what it decides."""

from dataclasses import dataclass
from enum import StrEnum

from launcher.operate.speculation.findings import Findings


class Action(StrEnum):
    """What the controller does."""

    KEEP = "keep"
    LOWER = "lower"
    RAISE = "raise"
    OFF = "off"
    TRY = "try"
    """Switch it on at one engine, and compare that with the others."""
    ON = "on"
    UNDO = "undo"
    """Back to what was before the last change."""
    COMPARE = "compare"
    """Half of the requests to either pool, to see which is faster."""
    PREFER_SPECULATION = "prefer_speculation"
    PREFER_PLAIN = "prefer_plain"


@dataclass(frozen=True, slots=True)
class State:
    """Of the engines of one pool. Times are seconds since the epoch."""

    cap: int
    """Draft tokens by step at most, of all engines but the one in trial; 0: off."""
    highest: int
    """What the profile allows."""
    changed_at: float
    last: int
    """The cap when it was on last."""
    trial: str | None = None
    """The engine that speculates while the others do not."""
    before: int | None = None
    """The cap before the last change, while that can be undone."""
    windows_before: tuple[tuple[float, float], ...] = ()
    """Before that change: load, and log time by output token."""
    not_again: tuple[int, ...] = ()
    """Caps that made things worse; forgotten when it is switched off."""
    retry_at: float | None = None
    """When it is tried again, while it is off."""
    pause: float = 0.0
    """From the next switching off until the trial after it."""
    off_at: float | None = None
    """The load at which it was switched off for want of a gain."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do and why."""

    action: Action
    cap: int
    """From now on, for the engines that are meant: all, or with ``try`` one."""
    reason: str
    found: Findings
    """What it goes by."""
