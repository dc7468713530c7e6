"""Shape: when the controller of speculation acts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Times are seconds."""

    window: float = 30.0
    """One look: everything is judged over whole windows."""
    confirm: int = 3
    """Windows with enough traffic, one after the other and since the last change, before anything is decided: single
    windows of identical runs differ by half (vllm#53436)."""
    most: int = 12
    """Windows that count: older ones are of another time."""
    warm_up: int = 1
    """Windows after a start that do not count."""
    least_requests: float = 5.0
    """In a window, of all engines of one setting; fewer are chance."""
    break_even: float = 0.5
    """Acceptance below which speculation is switched off, unless a gain is shown."""
    margin: float = 0.03
    """A gain or a loss below this is none."""
    seldom: float = 0.1
    """Share of drafts whose last token is accepted, below which fewer are drafted."""
    often: float = 0.6
    """The same, from which on one more is drafted."""
    rest: float = 120.0
    """Between two changes."""
    retry: float = 600.0
    """After switching off, until it is tried again on one engine; each further time twice as long."""
    longest_retry: float = 14400.0
    explore: float = 5.0
    """Percent of the traffic that the pool gets that is not preferred, where there are two: it keeps being measured."""
