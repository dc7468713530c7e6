"""Decision: which of two pools gets most of the traffic, the one that speculates or the plain one.

Both serve all the time, so nothing is restarted. They are compared with half of the traffic each: with less of it, the
load of one would be lighter, and tokens faster for that reason alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from launcher.operate.speculation.findings import Findings, comparable, log_tpot, percent
from launcher.operate.speculation.gain import gain
from launcher.operate.speculation.observation import Traffic, Window
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action, Decision


@dataclass(frozen=True, slots=True)
class SteerState:
    """Times are seconds since the epoch."""

    cap: int
    """Draft tokens by step of the pool that speculates."""
    changed_at: float
    prefers: bool | None = None
    """Whether the pool that speculates is preferred; ``None`` while they are compared."""
    load: float = 0.0
    """Requests at once by engine of the preferred pool, just after it was preferred; 0: not seen yet."""
    acceptance: float | None = None
    """When they were compared."""
    retry_at: float = 0.0
    pause: float = 0.0
    """Between two comparisons."""


def decide_steering(state: SteerState, windows: Sequence[Window], now: float, policy: Policy) -> Decision:
    """``windows``: since the last change, the newest last."""
    found, differences = _compared(windows, policy)
    kept = state.cap if state.prefers else 0
    if state.prefers is None:
        if len(differences) < policy.confirm:
            reason = f"too little traffic to compare: {len(differences)} of {policy.confirm} windows count"
            return Decision(Action.KEEP, state.cap, reason, found)
        assert found.gain is not None
        is_clear = found.gain.low > 0 or found.gain.high < policy.margin or len(differences) >= policy.most
        if not is_clear:
            return Decision(Action.KEEP, state.cap, f"{percent(found.gain)}: not clear yet", found)
        is_better = found.gain.low > 0 or (found.gain.high >= policy.margin and found.gain.value > policy.margin)
        reason = f"speculation gains {percent(found.gain)} tokens a second with half of the requests each"
        action = Action.PREFER_SPECULATION if is_better else Action.PREFER_PLAIN
        return Decision(action, state.cap if is_better else 0, reason, found)
    if now - state.changed_at < policy.rest:
        return Decision(Action.KEEP, kept, "it was changed a short while ago", found)
    if now >= state.retry_at:
        return Decision(Action.COMPARE, state.cap, "they were compared long ago", found)
    load = _load(state, windows, policy)
    if load and state.load and not comparable(load, state.load) and max(load, state.load) > 2:
        reason = f"{load:.1f} requests at once by engine, {state.load:.1f} when they were compared"
        return Decision(Action.COMPARE, state.cap, reason, found)
    rate = found.traffic.acceptance
    if rate is not None and state.acceptance is not None and _crossed(rate, state.acceptance, policy.break_even):
        reason = f"{rate:.0%} of draft tokens are accepted, {state.acceptance:.0%} when they were compared"
        return Decision(Action.COMPARE, state.cap, reason, found)
    return Decision(Action.KEEP, kept, f"compared again in {state.retry_at - now:.0f} s", found)


def after_steering(
    state: SteerState, decision: Decision, windows: Sequence[Window], now: float, policy: Policy
) -> SteerState:
    """When it was done."""
    match decision.action:
        case Action.COMPARE:
            return replace(state, prefers=None, changed_at=now, load=0.0)
        case Action.PREFER_SPECULATION | Action.PREFER_PLAIN:
            pause = min(max(state.pause * 2, policy.retry), policy.longest_retry)
            rate = decision.found.traffic.acceptance
            prefers = decision.action is Action.PREFER_SPECULATION
            return replace(
                state, prefers=prefers, changed_at=now, acceptance=rate, pause=pause, retry_at=now + pause, load=0.0
            )
        case _:
            load = _load(state, windows, policy)
            return replace(state, load=load) if load and not state.load and state.prefers is not None else state


def _compared(windows: Sequence[Window], policy: Policy) -> tuple[Findings, list[float]]:
    differences, drafted = [], []
    for window in windows[-policy.most :]:
        on = Traffic.of(each.traffic for each in window if each.is_whole and each.cap)
        off = Traffic.of(each.traffic for each in window if each.is_whole and not each.cap)
        drafted.append(on)
        if on.tpot and off.tpot and min(on.requests, off.requests) >= policy.least_requests:
            differences.append(log_tpot(off) - log_tpot(on))
    source = "the plain pool at the same time"
    return Findings(Traffic.of(drafted), len(differences), gain(differences), source), differences


def _load(state: SteerState, windows: Sequence[Window], policy: Policy) -> float:
    """Of the engines of the preferred pool, over the last windows; 0 when too few count."""
    lately = [Traffic.of(each.traffic for each in w if bool(each.cap) is state.prefers) for w in windows]
    counted = [each for each in lately if each.requests >= policy.least_requests][-policy.confirm :]
    return Traffic.of(counted).batch if len(counted) == policy.confirm else 0.0


def _crossed(now: float, then: float, limit: float) -> bool:
    """By more than chance would."""
    return (now < limit) is not (then < limit) and abs(now - then) > limit / 5
