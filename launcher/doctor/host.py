"""Looks at the machine that a deployment runs on."""

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from launcher import machine
from launcher.doctor.sight import Host
from launcher.local.deployment import InstanceState, State
from launcher.plan import Plan
from proxy.topology import ConnectorKind, Role

_PATIENCE = 1.0
_NIXL = (ConnectorKind.NIXL_PULL, ConnectorKind.NIXL_PUSH, ConnectorKind.MULTI)
"""Their side channel is a server at prefill."""


def look(folder: Path, instances: Iterable[InstanceState], plan: Plan | None) -> Host:
    """As it is now; ``folder`` is the run directory."""
    instances = tuple(instances)
    memory, disk = psutil.virtual_memory(), psutil.disk_usage(str(folder))
    shared = Path("/dev/shm")
    devices = {device for each in plan.engines for device in each.devices} if plan else ()
    return Host(
        memory_total=memory.total,
        memory_available=memory.available,
        swap_used=psutil.swap_memory().used,
        disk_free=disk.free,
        disk_total=disk.total,
        shared_free=psutil.disk_usage(str(shared)).free if shared.is_dir() else None,
        load=os.getloadavg()[0],
        cores=len(os.sched_getaffinity(0)),
        open_files=_open_files(instances),
        gpu_utilisation=machine.utilisation(devices),
        closed={} if plan is None else _closed(instances, plan),
    )


def _open_files(instances: Iterable[InstanceState]) -> Mapping[str, tuple[int, int]]:
    found = {}
    for each in instances:
        with suppress(psutil.Error, OSError):
            if each.pid:
                process = psutil.Process(each.pid)
                soft, _ = process.rlimit(psutil.RLIMIT_NOFILE)
                found[each.name] = process.num_fds(), soft
    return found


def _closed(instances: Iterable[InstanceState], plan: Plan) -> Mapping[str, str]:
    """Side channels of engines that serve, where nothing answers; those of prefill: decode asks there."""
    if plan.connector not in _NIXL:
        return {}
    serving = {each.name for each in instances if each.state is State.READY}
    closed = {}
    for engine in plan.engines:
        port = engine.side_channel_port
        if port is None or engine.name not in serving or engine.role is not Role.PREFILL:
            continue
        try:
            socket.create_connection((engine.host, port), timeout=_PATIENCE).close()
        except OSError as exc:
            closed[engine.name] = f"{engine.host}:{port} ({exc.strerror or exc})"
    return closed
