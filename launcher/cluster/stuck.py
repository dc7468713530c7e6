"""Decision: why a pod does not get ready, or a workload gets no pods, and what to do about it.

What Kubernetes writes where: the scheduler's reason is in a condition, the kubelet's in a container's state and in
events, that of an admission plugin in a condition of the workload.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from launcher.cluster import fixes
from launcher.cluster.rollout import current
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
from launcher.cluster.trouble import Trouble
from launcher.log_signatures import likely_cause

SHOWN = 30
"""Lines of a log."""
_MEANINGFUL = 300
"""Last lines in which to look for what was wrong."""
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
_RETRIED = "ErrImagePull"
_NOT_MADE = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
_HICCUP = re.compile(r"failed to sync \w+ cache")
"""Of a kubelet that has not heard yet of something that was made just now."""
_KILLED = 137
_CRASHES = 2
"""So many ends of a container that never got ready are no accident."""
_SOON, _A_WHILE, _A_MINUTE = 10.0, 30.0, 60.0
"""Seconds: for others who may be about to do something about it."""


def troubles(sight: Sight) -> list[Trouble]:
    """All that is wrong, of pods that are to stay and of workloads."""
    room = any(ends(pod) for pod in sight.pods)
    found = [of_workload(each) for each in sight.workloads]
    for pod in current(sight):
        if not is_ready(pod) and not has_ended(pod):
            events, log = sight.events.get(name(pod), ()), sight.logs.get(name(pod), Log())
            found.append(of_pod(pod, events, log, room=room) or of_proxy(pod, sight.proxies.get(name(pod), {})))
    return [each for each in found if each is not None]


def of_workload(workload: Object) -> Trouble | None:
    """Why it gets no pods, or has taken too long."""
    failure, progress = condition(workload, "ReplicaFailure"), condition(workload, "Progressing")
    if failure.get("status") == "True":
        why = str(failure.get("message", ""))
        return Trouble(name(workload), f"its pods are refused: {why}", fixes.of_admission(why), _SOON)
    if progress.get("reason") == "ProgressDeadlineExceeded":
        why = f"nothing went on for {workload['spec'].get('progressDeadlineSeconds')} s"
        return Trouble(name(workload), why, "Raise startup_timeout if it only needs longer", 0.0, is_late=True)
    return None


def of_pod(pod: Object, events: Sequence[Object], log: Log, *, room: bool = False) -> Trouble | None:
    """Why it is not ready, if it is known; ``room``: others end, which may make room for it."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("reason") == "Unschedulable":
        return _unscheduled(pod, str(scheduled.get("message", "")), events, room=room)
    found = (_of_container(pod, each, events, log) for each in containers(pod))
    return next((each for each in found if each is not None), None) or _of_volumes(pod, events)


def of_proxy(pod: Object, said: Mapping[str, object]) -> Trouble | None:
    """What keeps a proxy from seeing the engines, by its own words."""
    problem = str(said.get("discovery", ""))
    if role(pod) != PROXY or "may not see pods" not in problem:
        return None
    fix = "Set rbac.create=true, or bind such a Role to its ServiceAccount yourself"
    return Trouble(name(pod), problem.partition(": give")[0], fix, _A_WHILE)


def _unscheduled(pod: Object, why: str, events: Sequence[Object], *, room: bool) -> Trouble:
    claims = _said(events, "FailedBinding", "ProvisioningFailed")
    of_claims = f"; its claim: {claims}" if claims else ""
    grows = any(each.get("reason") == "TriggeredScaleUp" for each in events)
    return Trouble(
        name(pod),
        f"no node takes it: {why.rstrip('.')}{of_claims}; it asks for {_asked(pod)}",
        fixes.of_scheduling(why),
        None if room or grows else _A_MINUTE,
    )


def _of_container(pod: Object, container: Object, events: Sequence[Object], log: Log) -> Trouble | None:
    waiting = container.get("state", {}).get("waiting", {})
    reason, message = waiting.get("reason", ""), str(waiting.get("message", ""))
    if reason in _IMAGE:
        image = spec_of(pod, container["name"]).get("image", container.get("image"))
        why = _pulled(events) or message or reason
        patience = _A_WHILE if reason == _RETRIED else 0.0
        fix = fixes.of_image(why, of_proxy=role(pod) == PROXY)
        return Trouble(name(pod), f"the image {image} cannot be had: {why}", fix, patience)
    if reason in _NOT_MADE:
        fix = fixes.of_making(message, pod["metadata"]["namespace"])
        why = f"the container {container['name']} cannot be made: {message or reason}"
        return Trouble(name(pod), why, fix, _SOON)
    return _crashed(pod, container, events, log)


def _crashed(pod: Object, container: Object, events: Sequence[Object], log: Log) -> Trouble | None:
    state, count = container.get("state", {}), container.get("restartCount", 0)
    ended = state.get("terminated") or container.get("lastState", {}).get("terminated")
    if not ended or (ended.get("exitCode") == 0 and ended.get("reason") == "Completed" and count == 0):
        return None
    of, is_engine = container["name"], container["name"] == "engine"
    lines = log.now if "terminated" in state or not log.before else log.before
    tail = tuple(lines[-SHOWN:])
    if ended.get("reason") == "OOMKilled":
        limit = spec_of(pod, of).get("resources", {}).get("limits", {}).get("memory", "unlimited")
        why = f"the container {of} needed more memory than it may have ({limit}) and was killed"
        return Trouble(name(pod), why, fixes.of_memory(is_engine=is_engine), 0.0, tail)
    if ended.get("reason") in {"StartError", "ContainerCannotRun"}:
        message = str(ended.get("message", ""))
        return Trouble(name(pod), f"the container {of} cannot start: {message}", fixes.of_making(message, ""), 0.0)
    if _killed(events, "startup"):
        return Trouble(name(pod), _budget(pod, of), fixes.STARTUP, 0.0, tail, is_late=True)
    code = int(ended.get("exitCode", 0))
    by = " (SIGKILL)" if code == _KILLED else ""
    why = f"the container {of} ended with exit code {code}{by}, {count} restart{'s' * (count != 1)}"
    if _killed(events, "liveness"):
        why += "; it did not answer and was killed"
    cause = likely_cause(lines[-_MEANINGFUL:])
    fix = f"Likely: {cause}" if cause else f"Its last lines say more: kubectl logs {name(pod)} --previous"
    is_loop = state.get("waiting", {}).get("reason") == "CrashLoopBackOff" or count >= _CRASHES
    return Trouble(name(pod), why, fix, 0.0 if is_loop else None, tail)


def _of_volumes(pod: Object, events: Sequence[Object]) -> Trouble | None:
    if any("running" in each.get("state", {}) for each in containers(pod)):
        return None
    why = _said(events, "FailedMount", "FailedAttachVolume")
    if why and not _HICCUP.search(why):
        return Trouble(name(pod), f"a volume cannot be mounted: {why}", fixes.of_volume(why), _A_MINUTE)
    network = _said(events, "FailedCreatePodSandBox")
    return Trouble(name(pod), f"the node cannot make it: {network}", fixes.NODE) if network else None


def _asked(pod: Object) -> str:
    """Resources and nodes, as far as it has any wishes."""
    wishes: list[str] = []
    for container in pod["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        wishes += [f"{amount} {what}" for what, amount in sorted(wanted.items())]
    wishes += [f"{label}={value}" for label, value in sorted((pod["spec"].get("nodeSelector") or {}).items())]
    return ", ".join(wishes) or "nothing"


def _pulled(events: Sequence[Object]) -> str:
    """What the registry said, without what is around it."""
    said = [m for m in _messages(events, "Failed", "InspectFailed") if "image" in m]
    if not said:
        return ""
    why = re.sub(r'^Failed to pull image "[^"]*": ', "", said[-1])
    return re.sub(r"rpc error: code = \w+ desc = ", "", why)


def _budget(pod: Object, container: str) -> str:
    probe = spec_of(pod, container).get("startupProbe") or {}
    seconds = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
    return f"the container {container} was not ready within {seconds} s of its start and was killed"


def _killed(events: Sequence[Object], probe: str) -> bool:
    return any(f"failed {probe} probe" in each for each in _messages(events, "Killing"))


def _said(events: Sequence[Object], *reasons: str) -> str:
    return next(reversed([*_messages(events, *reasons)]), "")


def _messages(events: Sequence[Object], *reasons: str) -> Iterator[str]:
    return (str(each.get("message", "")) for each in events if each.get("reason") in reasons)
