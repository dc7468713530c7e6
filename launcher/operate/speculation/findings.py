"""Decision: what windows show of speculation: acceptance, and tokens a second that are gained at the same load."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from launcher.measure.interval import Interval
from launcher.operate.speculation.gain import gain
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.observation import Traffic, Window
from launcher.operate.speculation.policy import Policy


@dataclass(frozen=True, slots=True)
class Findings:
    """Of the windows that count."""

    traffic: Traffic
    windows: int
    gain: Interval | None = None
    """Tokens a second of a request gained at this load, as a share; ``None`` where nothing is known to compare with."""
    source: str | None = None
    """What it was compared with."""


def findings(windows: Sequence[Traffic], known: Knowledge) -> Findings:
    """Against what is ``known`` of serving without speculation at the loads of these windows."""
    found = Findings(Traffic.of(windows), len(windows))
    levels = [
        (each, level) for each in windows if (level := known.at(each.batch)) is not None and math.isfinite(level.error)
    ]
    if len(levels) < 2:
        return found
    differences = [level.value - log_tpot(each) for each, level in levels]
    unsure = max(level.error for _, level in levels)
    return replace(found, gain=gain(differences, unsure), source=levels[-1][1].source)


def side_by_side(found: Findings, windows: Sequence[Window], engine: str, policy: Policy) -> Findings:
    """The gain of this engine over others that did not speculate in the same moments, where there were such."""
    differences, others = [], 0
    for window in windows:
        on = Traffic.of(each.traffic for each in window if each.is_whole and each.engine == engine)
        rest = [each.traffic for each in window if each.is_whole and each.engine != engine and not each.cap]
        off, others = Traffic.of(rest), max(others, len(rest))
        if on.tpot and off.tpot and min(on.requests, off.requests) >= policy.least_requests / 2:
            differences.append(log_tpot(off) - log_tpot(on))
    if len(differences) < policy.confirm:
        return found
    source = f"{others} {'engine' if others == 1 else 'engines'} without it at the same time"
    return replace(found, gain=gain(differences), source=source)


def comparable(one: float, other: float) -> bool:
    """Whether two loads are about the same."""
    return 2 / 3 < max(one, 1.0) / max(other, 1.0) < 3 / 2


def log_tpot(traffic: Traffic) -> float:
    """Of traffic that has one."""
    assert traffic.tpot
    return math.log(traffic.tpot)


def percent(share: Interval) -> str:
    """For people."""
    return f"{share.value:+.0%} [{share.low:+.0%}, {share.high:+.0%}]"
