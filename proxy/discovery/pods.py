"""Decision: pods, as the API server tells them -> the topology, and who of it gets nothing new."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.config import fits
from proxy.topology import ConnectorKind, Instance, Role, Topology

Pod = Mapping[str, Any]
"""The API's JSON object."""
ROLE, REVISION = "duet/role", "duet/revision"
"""Labels: what an engine does; and of what it is made: prefill and decode of one revision work together."""
FACTS = "duet/facts"
"""Annotation: what is known of it that its partners must share, a JSON object."""
PORT = "http"
"""The name of the port where an engine serves."""
SIDE_CHANNEL = "side-channel"
"""The name of the port where its connector listens."""


def topology_of(
    pods: Iterable[Pod], connector: ConnectorKind | None
) -> tuple[Topology, tuple[str, ...], tuple[str, ...]]:
    """All engines that run; the names of those that get nothing new; and what is wrong with pods that are none.

    A pod that ends or is not ready keeps its requests and what is known of it; one that is gone is gone.
    """
    instances, draining, faults = [], [], []
    for pod in sorted(pods, key=_name):
        try:
            instance = _instance(pod, connector)
        except ValueError as exc:
            faults.append(f"pod {_name(pod)}: {exc}")
            continue
        if instance is not None:
            instances.append(instance)
            if _ends(pod) or not _is_ready(pod):
                draining.append(instance.name)
    return Topology(tuple(instances), connector), tuple(draining), tuple(faults)


def unready_of(pods: Iterable[Pod]) -> frozenset[str]:
    """The names of those that get nothing new only because they are not ready: they may have crashed."""
    return frozenset(_name(pod) for pod in pods if not _ends(pod) and not _is_ready(pod))


def _instance(pod: Pod, connector: ConnectorKind | None) -> Instance | None:
    """``None`` while it has no address or when it has ended; raises :class:`ValueError` for what cannot be one."""
    status, labels = pod.get("status") or {}, _labels(pod)
    address = status.get("podIP")
    if not address or status.get("phase") != "Running":
        return None
    try:
        role = Role(labels.get(ROLE, ""))
    except ValueError:
        raise ValueError(f"label {ROLE} is {labels.get(ROLE)!r}: one of {', '.join(Role)} is needed") from None
    if not fits(_name(pod)):
        raise ValueError("its name is longer than 64 letters: choose a shorter name for the release")
    host = f"[{address}]" if ":" in address else address
    bootstraps = connector is ConnectorKind.MOONCAKE and role is Role.PREFILL
    return Instance(
        name=_name(pod),
        role=role,
        url=f"http://{host}:{_port(pod, PORT)}",
        bootstrap=f"http://{host}:{_port(pod, SIDE_CHANNEL)}" if bootstraps else None,
        fingerprint={**_facts(pod), "revision": labels[REVISION]} if REVISION in labels else _facts(pod),
    )


def _facts(pod: Pod) -> dict[str, str]:
    text = (pod["metadata"].get("annotations") or {}).get(FACTS, "{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError(f"annotation {FACTS} is no JSON object of texts: {text[:80]}")
    return found


def _port(pod: Pod, name: str) -> int:
    for container in (pod.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == name:
                return int(port["containerPort"])
    raise ValueError(f"no container has a port named {name}")


def _is_ready(pod: Pod) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _ends(pod: Pod) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None


def _labels(pod: Pod) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}


def _name(pod: Pod) -> str:
    return str(pod["metadata"]["name"])
