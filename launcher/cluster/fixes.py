"""Decision: what to do about what Kubernetes says, by its words. Keys are those of the chart's values."""

import re

STARTUP = "Raise startup_timeout if it only needs longer; its last lines say what it did"
NODE = "Look at the node: kubectl describe node"
_DESCRIBE = "kubectl describe pod says more"

_SCHEDULING = (
    (r"unbound immediate", "Give the claim a volume or a storage class (modelCache.storageClassName)"),
    (r'persistentvolumeclaim "([^"]+)"', "Make the claim {0}, or name another one"),
    (r"Insufficient cpu", "Lower roles.*.cores or engine.resources.requests.cpu, or add nodes"),
    (r"Insufficient memory", "Lower engine.resources.requests.memory, or add nodes"),
    (
        r"Insufficient (?!cpu\b|memory\b)([\w./-]*\w)",
        "Free {0}, add nodes with it (is its device plugin there?), or ask for less",
    ),
    (r"affinity|node selector|topology spread", "Change engine.nodeSelector, affinity or spread, or label the nodes"),
)
_IMAGE = (
    (r"unauthorized|denied|authentication|no basic auth|403", "Give its registry's Secret: imagePullSecrets"),
    (r"InvalidImageName|parse image|Never", "Correct {image}.repository and {image}.tag"),
    (r"not found|manifest unknown|does not exist", "Correct {image}.repository and {image}.tag, or push it there"),
    (r"", "Is the name right ({image}.repository, {image}.tag), and do the nodes reach that registry?"),
)
_MAKING = (
    (
        r'secret "([^"]+)" not found',
        "Make it: kubectl --namespace {namespace} create secret generic {0} --from-literal=...",
    ),
    (r"couldn't find key (\S+) in Secret \S+/(\S+)", "Add the key {0} to the Secret {1}"),
    (r'configmap "([^"]+)" not found', "Make the ConfigMap {0}"),
    (r"runAsNonRoot|non-root", "Set engine.podSecurityContext.runAsUser to a user of the image"),
    (r"executable file not found|no such file", "Its image lacks that program: correct engine.image or engine_command"),
    (r"", _DESCRIBE),
)
_ADMISSION = (
    (r"exceeded quota|must specify", "Ask for less, or raise the quota: kubectl describe quota"),
    (r"usage per|LimitRange", "Ask for what the namespace allows: kubectl describe limitrange"),
    (r"PodSecurity|security context", "Set engine.podSecurityContext and proxy.podSecurityContext to what is allowed"),
    (r"service ?account", "Make it, or set serviceAccount.create=true"),
    (r"denied the request", "Ask who runs that webhook"),
    (r"RuntimeClass", "Correct engine.runtimeClassName"),
    (r"priority", "Correct engine.priorityClassName"),
    (r"", "kubectl describe replicaset says more"),
)
_VOLUME = (
    (r'secret "([^"]+)" not found', "Make the Secret {0}"),
    (r'configmap "([^"]+)" not found', "Make the ConfigMap {0}"),
    (r"Multi-Attach", "Its claim is ReadWriteOnce and on another node: use ReadWriteMany"),
    (r"hostPath type check failed|no such file", "The folder is not on that node: correct the hostPath"),
    (r"", _DESCRIBE),
)


def of_scheduling(why: str) -> str:
    """For what the scheduler says, which may be several things."""
    return "; ".join(fix.format(*match.groups()) for match, fix in _matches(_SCHEDULING, why)) or _DESCRIBE


def of_image(why: str, *, of_proxy: bool) -> str:
    """For what a registry says."""
    return _first(_IMAGE, why, image="proxy.image" if of_proxy else "engine.image")


def of_making(why: str, namespace: str) -> str:
    """For a container that cannot be made or started."""
    return _first(_MAKING, why, namespace=namespace)


def of_admission(why: str) -> str:
    """For pods that the API server does not take."""
    return _first(_ADMISSION, why)


def of_volume(why: str) -> str:
    """For what cannot be mounted."""
    return _first(_VOLUME, why)


def of_memory(*, is_engine: bool) -> str:
    """For a container that was killed by the kernel."""
    if not is_engine:
        return "Raise proxy.resources.limits.memory"
    return "Raise engine.resources.limits.memory, or lower roles.*.kv_cache_memory; /dev/shm counts, too"


def _matches(table: tuple[tuple[str, str], ...], why: str) -> list[tuple[re.Match[str], str]]:
    found = ((re.search(pattern, why, re.IGNORECASE), fix) for pattern, fix in table)
    return [(match, fix) for match, fix in found if match]


def _first(table: tuple[tuple[str, str], ...], why: str, **names: str) -> str:
    match, fix = _matches(table, why)[0]
    return fix.format(*match.groups(), **names)
