"""Shape: what there is of one release in a cluster, as the API server tells it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]
"""One of Kubernetes' objects, as JSON."""
ROLE, RELEASE, COMPONENT = "duet/role", "app.kubernetes.io/instance", "app.kubernetes.io/component"
PROXY = "proxy"


@dataclass(frozen=True, slots=True)
class Log:
    """What a container wrote last."""

    now: Sequence[str] = ()
    before: Sequence[str] = ()
    """In its run before this one."""


@dataclass(frozen=True, slots=True)
class Sight:
    """All lists in the order in which the API server tells them."""

    workloads: Sequence[Object] = ()
    """Deployments and LeaderWorkerSets."""
    replica_sets: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    events: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """Of pods that are not ready, and of their claims, oldest first; by the pod's name."""
    logs: Mapping[str, Log] = field(default_factory=dict)
    """Of pods that are not ready, by name."""
    proxies: Mapping[str, Object] = field(default_factory=dict)
    """What proxies answer at ``/ready``, by the pod's name; none where nobody may ask."""
    notes: Sequence[str] = ()
    """What could not be seen, and why."""


def name(thing: Object) -> str:
    """Of an object."""
    return str(thing["metadata"]["name"])


def labels(thing: Object) -> Mapping[str, str]:
    """Of an object."""
    return thing["metadata"].get("labels") or {}


def role(pod: Object) -> str:
    """A role of the topology, ``proxy``, or what else it is for."""
    found = labels(pod)
    return found.get(ROLE) or found.get(COMPONENT) or ""


def ends(pod: Object) -> bool:
    """Whether it was told to end."""
    return "deletionTimestamp" in pod["metadata"]


def has_ended(pod: Object) -> bool:
    """Whether nothing of it runs any more, as planned or not."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def is_ready(pod: Object) -> bool:
    """Whether requests may come."""
    return not ends(pod) and condition(pod, "Ready").get("status") == "True"


def condition(thing: Object, kind: str) -> Object:
    """The one of this type; empty where there is none."""
    found = thing.get("status", {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def containers(pod: Object) -> Iterator[Object]:
    """The states of its containers, in the order in which they start."""
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def spec_of(pod: Object, container: str) -> Object:
    """What was asked for it; empty where there is none of this name."""
    spec = pod["spec"]
    every = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return next((each for each in every if each["name"] == container), {})
