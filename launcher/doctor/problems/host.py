"""The machine."""

from collections.abc import Iterator

from pydantic import ByteSize

from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Host, Sight

_LEAST_MEMORY = 0.05
_LEAST_DISK = 0.05
_LEAST_SHARED = 64 * 2**20
_BUSY = 4.0
"""Processes by core; NIXL's pollers always want to run, and give way."""
_MANY_FILES = 0.8


def _hosts(sight: Sight) -> Iterator[Host]:
    if sight.host is not None:
        yield sight.host


def _memory(sight: Sight) -> Iterator[Evidence]:
    for host in _hosts(sight):
        if host.memory_available < _LEAST_MEMORY * host.memory_total:
            swapped = f", {_human(host.swap_used)} are swapped out" if host.swap_used else ""
            text = f"{_human(host.memory_available)} of {_human(host.memory_total)} are available{swapped}"
            yield Evidence("host", text)


def _disk(sight: Sight) -> Iterator[Evidence]:
    for host in _hosts(sight):
        if host.disk_free < _LEAST_DISK * host.disk_total:
            text = f"{_human(host.disk_free)} of {_human(host.disk_total)} are free where the run directory is"
            yield Evidence("host", text)
        if host.shared_free is not None and host.shared_free < _LEAST_SHARED:
            yield Evidence("host", f"{_human(host.shared_free)} are free in /dev/shm")


def _load(sight: Sight) -> Iterator[Evidence]:
    for host in _hosts(sight):
        if host.load > _BUSY * host.cores:
            yield Evidence("host", f"on average {host.load:.1f} processes want to run on {host.cores} cores")


def _files(sight: Sight) -> Iterator[Evidence]:
    for host in _hosts(sight):
        for name, (opened, limit) in host.open_files.items():
            if opened > _MANY_FILES * limit:
                yield Evidence(name, f"{opened} of at most {limit} files and connections are open")


def _side_channel(sight: Sight) -> Iterator[Evidence]:
    for host in _hosts(sight):
        for name, address in host.closed.items():
            yield Evidence(name, f"nothing accepts connections at {address}")


def _human(size: int) -> str:
    return ByteSize(size).human_readable()


CHECKS = (
    Check(
        Problem(
            "side-channel-closed",
            Severity.CRITICAL,
            "An instance's KV connector cannot be reached.",
            "The side channel's port is closed: the engine core is gone, the address is another one, or a firewall is "
            "between.",
            "`launcher plan PROFILE` (side channel); `ss -ltnp`",
            "Open the port; on several machines the side channel's host must be one that the others reach; restart the "
            "instance.",
        ),
        _side_channel,
    ),
    Check(
        Problem(
            "host-memory-low",
            Severity.CRITICAL,
            "The machine is about to run out of memory: the kernel will kill the largest process, an engine.",
            "KV caches or weights on a CPU, several engines, or another program.",
            "`free -h`, `ps aux --sort -rss`; `dmesg` for the OOM killer",
            "Lower `kv_cache_memory`, stop other programs, quantize.",
        ),
        _memory,
    ),
    Check(
        Problem(
            "disk-almost-full",
            Severity.WARNING,
            "A disk is almost full.",
            "Logs, models or caches.",
            "`df -h`",
            "Make room before state and logs cannot be written any more; a larger /dev/shm for containers.",
        ),
        _disk,
    ),
    Check(
        Problem(
            "cpu-overcommitted",
            Severity.WARNING,
            "More processes want to run than there are cores: requests stall.",
            "Engines on a CPU, or other programs beside; NIXL's pollers need a core each.",
            "`top`; the load average",
            "Fewer instances on this machine, or more cores.",
        ),
        _load,
    ),
    Check(
        Problem(
            "open-files-low",
            Severity.WARNING,
            "A process may soon open no more connections.",
            "Each request needs three connections of the proxy; the limit is that of the user or the service.",
            "`ls /proc/PID/fd | wc -l`, `ulimit -n`",
            "Raise the limit (LimitNOFILE of a unit, `ulimit -n`), or lower `proxy.admission.concurrency`.",
        ),
        _files,
    ),
)
