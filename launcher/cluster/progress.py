"""Decision: what each pod of a release is doing, and how far it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from launcher import loading
from launcher.cluster.rollout import is_old
from launcher.cluster.sight import (
    PROXY,
    Log,
    Object,
    Sight,
    condition,
    containers,
    ends,
    has_ended,
    is_ready,
    name,
    role,
    spec_of,
)

_SCHEDULED, _PULLS, _STARTS, _RUNS = 0.02, 0.05, 0.1, 0.15
"""How far a start is then; after that an engine's log tells."""


class State(StrEnum):
    """Of one pod."""

    WAITING = "waiting"
    """For a node, or for what the node makes ready."""
    STARTING = "starting"
    READY = "ready"
    ENDING = "ending"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Doing:
    """What one pod does now."""

    pod: str
    role: str
    state: State
    text: str
    fraction: float
    """Of its start, between 0 and 1."""
    step: str = ""
    """The text without numbers that change all the time."""


def doings(sight: Sight, now: float) -> list[Doing]:
    """Of all pods that are there; ``now`` in seconds since the epoch."""
    return [_doing(pod, sight, now) for pod in sight.pods]


def _doing(pod: Object, sight: Sight, now: float) -> Doing:
    state, text, fraction, step = _of(pod, sight, now)
    if state is State.READY and is_old(pod, sight):
        text = step = "ready, of the version before"
    return Doing(name(pod), role(pod), state, text, fraction, step or text)


def _of(pod: Object, sight: Sight, now: float) -> tuple[State, str, float, str]:
    if ends(pod):
        left = when(pod["metadata"]["deletionTimestamp"]) - now
        return State.ENDING, f"drains, ends within {max(0.0, left):.0f} s", 0.0, "drains"
    if has_ended(pod):
        phase = pod["status"]["phase"]
        return State.ENDED, str(pod["status"].get("reason") or phase).lower(), 1.0, ""
    if is_ready(pod):
        return State.READY, "ready", 1.0, ""
    if condition(pod, "PodScheduled").get("status") != "True":
        return State.WAITING, "waits for a node", 0.0, ""
    if not any("running" in each.get("state", {}) for each in containers(pod)):
        return State.WAITING, *_waiting(pod, sight.events.get(name(pod), ())), ""
    if role(pod) == PROXY:
        return State.STARTING, _of_proxy(sight.proxies.get(name(pod), {})), _RUNS, ""
    if not spec_of(pod, "engine"):
        return State.STARTING, "runs", _RUNS, ""
    return State.STARTING, *_loading(sight.logs.get(name(pod), Log()))


def _waiting(pod: Object, events: Sequence[Object]) -> tuple[str, float]:
    reasons = [each.get("state", {}).get("waiting", {}).get("reason") for each in containers(pod)]
    if "CrashLoopBackOff" in reasons:
        return "waits to be started again", _STARTS
    if any("Image" in str(reason) for reason in reasons):
        return "has no image", _SCHEDULED
    last = next((each for each in reversed(events) if each.get("reason") in {"Pulling", "Pulled", "Created"}), {})
    if last.get("reason") == "Pulling":
        images = [spec_of(pod, each["name"]).get("image", "") for each in containers(pod)]
        return f"pulling {', '.join(image for image in images if image in str(last.get('message')))}", _PULLS
    return "being made", _STARTS if last else _SCHEDULED


def _loading(log: Log) -> tuple[str, float, str]:
    found = loading.after(log.now)
    return str(found), _RUNS + (1 - _RUNS) * found.fraction, found.title


def _of_proxy(said: Mapping[str, object]) -> str:
    modes = said.get("modes")
    instances = said.get("instances")
    if not isinstance(modes, dict) or not isinstance(instances, list):
        return "waits for engines"
    if said.get("ready"):
        return "serves; the cluster has not seen it yet"
    healthy = sum(bool(each.get("healthy")) for each in instances)
    return f"waits for engines: {healthy} of {len(instances)} that it sees answer"


def when(stamp: str) -> float:
    """Seconds since the epoch."""
    return datetime.fromisoformat(stamp).timestamp()
