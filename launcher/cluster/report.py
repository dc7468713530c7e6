"""Decision: how the releases of a namespace are, for `launcher status --cluster`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from launcher.amounts import duration
from launcher.cluster.helm import Release
from launcher.cluster.progress import State, doings, when
from launcher.cluster.rollout import missing
from launcher.cluster.sight import Object, Sight, containers, is_ready, name, spec_of
from launcher.cluster.stuck import troubles

_DEPLOYED = "deployed"
SEEN = "as the cluster says"
"""What a proxy says that sees it."""


@dataclass(frozen=True, slots=True)
class PodReport:
    """One pod."""

    name: str
    role: str
    ready: bool
    state: str
    """What it does."""
    restarts: int
    age: float
    """Seconds."""
    node: str
    image: str
    wrong: str
    """Empty when nothing is."""


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """One release."""

    name: str
    revision: int
    status: str
    """What Helm says of it."""
    healthy: bool
    proxy: str
    """How the deployment serves, by the proxy's own words; empty when it cannot be asked."""
    pods: Sequence[PodReport]
    problems: Sequence[str]
    """All that is wrong, and what to do about it."""
    notes: Sequence[str]


def of(release: Release, sight: Sight, now: float) -> ReleaseReport:
    """``now`` in seconds since the epoch."""
    found = troubles(sight)
    wrong = {each.of: each.why for each in found}
    says = _says(sight.proxies.values())
    problems = [*missing(sight), *map(str, found)]
    if release.status != _DEPLOYED:
        problems.insert(0, f"helm says that it is {release.status}")
    if not sight.workloads:
        problems.append("it has no workloads")
    doing = {each.pod: each for each in doings(sight, now)}
    pods = [
        _pod(pod, doing[name(pod)].role, doing[name(pod)].text, wrong.get(name(pod), ""), now)
        for pod in sight.pods
        if doing[name(pod)].state is not State.ENDED
    ]
    return ReleaseReport(
        release.name, release.revision, release.status, not problems, says, pods, problems, sight.notes
    )


def row(pod: PodReport) -> tuple[str, ...]:
    """For a table."""
    texts = (str(pod.restarts), duration(pod.age), pod.node, pod.image)
    return (pod.name, pod.role, "yes" if pod.ready else "no", pod.state, *texts)


COLUMNS = ("POD", "ROLE", "READY", "STATE", "RESTARTS", "AGE", "NODE", "IMAGE")


def _pod(pod: Object, role: str, state: str, wrong: str, now: float) -> PodReport:
    every = [*containers(pod)]
    images = [str(spec_of(pod, each["name"]).get("image", "")) for each in pod["spec"]["containers"]]
    return PodReport(
        name=name(pod),
        role=role,
        ready=is_ready(pod),
        state=state,
        restarts=sum(each.get("restartCount", 0) for each in every),
        age=max(0.0, now - when(pod["metadata"]["creationTimestamp"])),
        node=pod["spec"].get("nodeName", ""),
        image=", ".join(images),
        wrong=wrong,
    )


def _says(proxies: Iterable[Mapping[str, object]]) -> str:
    """Of the first that answers."""
    said = next(iter(proxies), None)
    if said is None:
        return ""
    modes, instances = said.get("modes"), said.get("instances")
    parts = ["ready" if said.get("ready") else "not ready"]
    if isinstance(modes, dict):
        parts.append(f"modes: {', '.join(mode for mode, works in modes.items() if works) or 'none'}")
    if isinstance(instances, list):
        parts += [f"{each['name']}: {each['reason'] or 'unhealthy'}" for each in instances if not each["healthy"]]
    if said.get("discovery", SEEN) != SEEN:
        parts.append(str(said["discovery"]))
    return "; ".join(parts)
