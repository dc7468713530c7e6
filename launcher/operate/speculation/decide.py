"""Decision: what to do about speculation after one more window.

By tokens a second that are gained at this load, where that is known; by acceptance, where it is not. Nothing follows
from one window, nothing right after a change, and what made things worse is taken back.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from launcher.operate.speculation.findings import Findings, comparable, findings, log_tpot, percent, side_by_side
from launcher.operate.speculation.gain import between
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.observation import Seen, Traffic, Window
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action, Decision, State


def decide(state: State, windows: Sequence[Window], known: Knowledge, now: float, policy: Policy) -> Decision:
    """``windows``: since the last change, the newest last. ``known``: of serving without speculation."""
    on = counted(windows, policy, lambda each: each.cap > 0)
    off = counted(windows, policy, lambda each: each.cap == 0)
    if now - state.changed_at < policy.rest:
        return _keep(state, findings(on or off, known), "it was changed a short while ago")
    if state.cap == 0 and state.trial is None:
        return _while_off(state, off, known, now, policy)
    found = findings(on, known)
    if len(on) < policy.confirm:
        return _keep(state, found, f"too little traffic to judge by: {len(on)} of {policy.confirm} windows count")
    if state.trial is not None:
        return _on_trial(state, found, windows, policy)
    return _undone(state, on, found, policy) or _while_on(state, found, policy)


def counted(windows: Sequence[Window], policy: Policy, of: Callable[[Seen], bool]) -> list[Traffic]:
    """The windows of some engines that count, each as one: whole ones with enough requests, the newest ones only."""
    together = (Traffic.of(each.traffic for each in window if each.is_whole and of(each)) for window in windows)
    return [each for each in together if each.tpot and each.requests >= policy.least_requests][-policy.most :]


def _while_on(state: State, found: Findings, policy: Policy) -> Decision:
    traffic, gain = found.traffic, found.gain
    fewer = _fewer(state, traffic, policy)
    if gain is not None and gain.high < (policy.margin if traffic.drafted else 0):
        reason = f"no gain at this load: {percent(gain)} tokens a second against {found.source}"
        return _less(state, fewer, reason, found)
    if not traffic.drafted:
        return _keep(state, found, "nothing is drafted at this load, and that costs nothing that is known")
    rate = traffic.accepted / traffic.drafted
    if rate < policy.break_even and (gain is None or gain.value < policy.margin):
        reason = f"{rate:.0%} of draft tokens are accepted, less than {policy.break_even:.0%}, and no gain is shown"
        return _less(state, _accepted_enough(state, traffic, policy), reason, found)
    if fewer:
        reason = f"the last of {state.cap} draft tokens is accepted in less than {policy.seldom:.0%} of drafts"
        return Decision(Action.LOWER, fewer, reason, found)
    last, more = traffic.accepted_at(state.cap - 1), state.cap + 1
    if last is not None and last >= policy.often and more <= state.highest and more not in state.not_again:
        reason = f"even the last of {state.cap} draft tokens is accepted in {last:.0%} of drafts"
        return Decision(Action.RAISE, more, reason, found)
    shown = "what it gains is not known" if gain is None else f"it gains {percent(gain)} against {found.source}"
    return _keep(state, found, f"{rate:.0%} of draft tokens are accepted, {shown}")


def _less(state: State, fewer: int, reason: str, found: Findings) -> Decision:
    """Fewer draft tokens if the last ones are the trouble, else none."""
    return Decision(Action.LOWER if fewer else Action.OFF, fewer, reason, found)


def _on_trial(state: State, found: Findings, windows: Sequence[Window], policy: Policy) -> Decision:
    """One engine against the others in the same moments, or, where it is alone, against what is known."""
    assert state.trial is not None
    found = side_by_side(found, windows[-policy.most :], state.trial, policy)
    gain, rate = found.gain, found.traffic.acceptance or 0.0
    if gain is None:
        is_good, reason = rate >= policy.break_even, f"{rate:.0%} accepted on trial; what it gains is not known"
    elif gain.low <= 0 and gain.high >= policy.margin and found.windows < policy.most:
        return _keep(state, found, f"on trial it gains {percent(gain)}: not clear yet")
    else:
        is_good = gain.low > 0 or (gain.high >= policy.margin and gain.value > policy.margin)
        reason = f"on trial it gains {percent(gain)} against {found.source}"
    return Decision(Action.ON if is_good else Action.OFF, state.last if is_good else 0, reason, found)


def _while_off(state: State, off: Sequence[Traffic], known: Knowledge, now: float, policy: Policy) -> Decision:
    lately = findings(off[-policy.confirm :], known)
    if len(off) < policy.confirm:
        return _keep(state, lately, "it is off, and there is too little traffic to try it with")
    load = lately.traffic.batch
    if state.off_at is not None and load < state.off_at / 2:
        reason = f"{load:.1f} requests at once by engine, {state.off_at:.1f} when it was switched off: less load"
        return Decision(Action.TRY, state.last, reason, lately)
    retry_at = state.retry_at or state.changed_at
    if now >= retry_at:
        return Decision(Action.TRY, state.last, "off for long enough: what clients ask may have changed", lately)
    return _keep(state, lately, f"it is off, and tried again in {retry_at - now:.0f} s")


def after(state: State, decision: Decision, windows: Sequence[Window], now: float, policy: Policy, one: str) -> State:
    """When it was done. ``one``: the engine on which something is tried."""
    match decision.action:
        case Action.OFF:
            pause = max(state.pause, policy.retry)
            off_at = decision.found.traffic.batch if decision.found.gain is not None else None
            forgotten = replace(state, trial=None, before=None, windows_before=(), not_again=())
            return replace(
                forgotten,
                cap=0,
                changed_at=now,
                last=state.cap or state.last,
                retry_at=now + pause,
                pause=min(pause * 2, policy.longest_retry),
                off_at=off_at,
            )
        case Action.TRY:
            return replace(state, trial=one, changed_at=now, retry_at=None, off_at=None)
        case Action.ON:
            return replace(state, cap=decision.cap, trial=None, changed_at=now, pause=0.0)
        case Action.UNDO:
            worse = (*state.not_again, state.cap)
            return replace(state, cap=decision.cap, changed_at=now, before=None, windows_before=(), not_again=worse)
        case Action.LOWER | Action.RAISE:
            levels = tuple((each.batch, log_tpot(each)) for each in counted(windows, policy, lambda _: True))
            return replace(state, cap=decision.cap, changed_at=now, before=state.cap, windows_before=levels)
        case _:
            return state


def _undone(state: State, on: Sequence[Traffic], found: Findings, policy: Policy) -> Decision | None:
    """When the last change has made things worse, against the windows before it of about the same load."""
    if state.before is None:
        return None
    was = [tpot for load, tpot in state.windows_before if comparable(load, found.traffic.batch)]
    change = between([log_tpot(each) for each in on], was)
    if change is None or change.high >= -policy.margin:
        return None
    reason = f"{percent(change)} tokens a second since at most {state.cap} tokens are drafted, not {state.before}"
    return Decision(Action.UNDO, state.before, reason, found)


def _fewer(state: State, traffic: Traffic, policy: Policy) -> int:
    """The cap that leaves out positions that are seldom accepted; 0 when none are, or nothing would be left."""
    useful = 0
    while useful < state.cap and (traffic.accepted_at(useful) or 0.0) >= policy.seldom:
        useful += 1
    is_less = 0 < useful < min(state.cap, len(traffic.by_position))
    return useful if is_less and useful not in state.not_again else 0


def _accepted_enough(state: State, traffic: Traffic, policy: Policy) -> int:
    """The largest cap up to which acceptance is above break-even; 0 for none that is lower than today's."""
    rates = [traffic.accepted_at(place) or 0.0 for place in range(min(state.cap - 1, len(traffic.by_position)))]
    enough = [k for k in range(1, len(rates) + 1) if sum(rates[:k]) / k >= policy.break_even]
    return max((k for k in enough if k not in state.not_again), default=0)


def _keep(state: State, found: Findings, reason: str) -> Decision:
    return Decision(Action.KEEP, state.cap, reason, found)
