"""Decision: how far a release's workloads are, and which pods are of their newest version."""

from collections.abc import Sequence

from launcher.cluster.sight import Object, Sight, ends, name

_REVISION = "deployment.kubernetes.io/revision"
_LEAST = 600
"""Seconds: what Kubernetes takes for a Deployment that says nothing."""


def waits_for(workload: Object) -> str:
    """What is still missing; empty when its newest version serves and nothing of older ones is left."""
    spec, status = workload["spec"], workload.get("status", {})
    wanted = spec.get("replicas", 1)
    if not is_seen(workload):
        return "the cluster has not seen its new version yet"
    if (new := status.get("updatedReplicas", 0)) < wanted:
        return f"{new} of {wanted} pods are of the new version"
    if (old := status.get("replicas", 0) - new) > 0:
        return f"{old} pod{'s' * (old > 1)} of the version before"
    serving = status.get("availableReplicas", status.get("readyReplicas", 0))
    return f"{serving} of {wanted} ready" if serving < wanted else ""


def is_seen(workload: Object) -> bool:
    """Whether what the cluster says is of what was asked for last."""
    seen = workload.get("status", {}).get("observedGeneration")
    # A LeaderWorkerSet does not tell.
    return workload["kind"] != "Deployment" or int(seen or 0) >= int(workload["metadata"].get("generation", 0))


def is_done(sight: Sight) -> bool:
    """Whether all of the newest version serve."""
    return bool(sight.workloads) and not any(waits_for(each) for each in sight.workloads)


def current(sight: Sight) -> list[Object]:
    """Pods of the newest version that are to stay."""
    return [pod for pod in sight.pods if not ends(pod) and not is_old(pod, sight)]


def is_old(pod: Object, sight: Sight) -> bool:
    """Whether a newer version replaces it, or the cluster may not know of that yet."""
    owner = _owner(pod)
    mine = next((each for each in sight.replica_sets if each["metadata"]["uid"] == owner), None)
    if mine is None:
        return False
    above = _owner(mine)
    if any(each["metadata"]["uid"] == above and not is_seen(each) for each in sight.workloads):
        return True
    siblings = [each for each in sight.replica_sets if _owner(each) == above]
    return max(siblings, key=_number) is not mine


def deadline(workloads: Sequence[Object]) -> int:
    """Seconds after which the slowest of them is given up."""
    return max([_LEAST, *(each["spec"].get("progressDeadlineSeconds") or 0 for each in workloads)])


def missing(sight: Sight) -> list[str]:
    """One line for each workload that is not done."""
    return [f"{name(each)}: {text}" for each in sight.workloads if (text := waits_for(each))]


def _owner(thing: Object) -> str:
    owners = thing["metadata"].get("ownerReferences") or ()
    return str(next((each["uid"] for each in owners if each.get("controller")), ""))


def _number(replica_set: Object) -> int:
    return int(replica_set["metadata"].get("annotations", {}).get(_REVISION, 0))
