"""Decision: how the deployment is, in a word, and why it is not well."""

import time
from dataclasses import dataclass
from enum import StrEnum

from proxy.breaker import State
from proxy.pair import Standing
from proxy.pool import Pool
from proxy.pools import by_name

_SHOWN = 8


class Health(StrEnum):
    """Of a deployment."""

    READY = "ready"
    """All of it serves."""
    DEGRADED = "degraded"
    """Requests are answered, but not as they should be, or by fewer than there are."""
    DOWN = "down"
    """Requests are not answered."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The word, and each thing that speaks against the deployment in a sentence."""

    health: Health
    reasons: tuple[str, ...]


def condition(pool: Pool, *, ready: bool, draining: bool, unseen: str = "") -> Condition:
    """``ready``: an ordinary request would be answered; ``draining``: the proxy is about to end.

    ``unseen``: why the proxy does not know which instances there are.
    """
    if draining:
        return Condition(Health.DOWN, ("The proxy is being stopped.",))
    without_pair = [name for name in pool.names or ("",) if pool.uses_pd(name) and not pool.has_pair(name)]
    reasons = [*_of_instances(pool, drained=bool(without_pair) or not ready), *_of_pairs(pool)]
    if unseen:
        reasons.insert(0, f"Instances are followed no more: {unseen}")
    if ready:
        reasons[:0] = [_bypass(pool, name) for name in without_pair]
    if not ready:
        return Condition(Health.DOWN, _some(reasons) or ("No instance serves.",))
    return Condition(Health.DEGRADED if reasons else Health.READY, _some(reasons))


def _bypass(pool: Pool, name: str) -> str:
    whose = f"Requests of the pool {by_name(name)}" if len(pool.names) > 1 else "Requests"
    return f"{whose} bypass prefill: no pair of a prefill and a decode instance gets requests."


def _of_instances(pool: Pool, *, drained: bool) -> list[str]:
    """With ``drained`` also those that somebody has taken out on purpose: it matters when the others are not enough."""
    now, found = time.monotonic(), []
    for member in pool.members:
        if not member.healthy:
            found.append(f"{member.instance.name}: {member.reason}")
        elif member.draining and drained:
            found.append(f"{member.instance.name} is drained: it gets no new requests")
        elif member.breaker.state(now) is not State.CLOSED:
            found.append(f"{member.instance.name} gets fewer requests: {member.breaker.reason}")
    return found


def _of_pairs(pool: Pool) -> list[str]:
    """Those of which both instances serve: what is wrong with an instance is told already."""
    now, found = time.monotonic(), []
    for couple in pool.couples():
        pair = pool.pair(*couple)
        if all(member.usable for member in couple) and (
            not pair.admits(now) or pair.standing(now) in (Standing.FAILING, Standing.TRIAL)
        ):
            found.append(f"{pair.prefill} to {pair.decode}: {pair.reason or 'not proven yet'}")
    return found


def _some(reasons: list[str]) -> tuple[str, ...]:
    more = len(reasons) - _SHOWN
    return (*reasons[:_SHOWN], *([f"And {more} more."] if more > 0 else []))
