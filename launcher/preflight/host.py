"""What the machine grants: files, shared memory, disk, free memory of GPUs, the driver."""

from collections.abc import Iterator

from pydantic import ByteSize

from launcher.engine_args import hub_ids
from launcher.gpus import DEFAULT_SHARE
from launcher.inventory import Checkpoint
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity, key_in_pool
from launcher.profile import Device
from launcher.weights import folder_of

_FILES_PER_REQUEST = 3
"""Of the proxy: the client's connection and one to each engine of the pair."""
_OTHER_FILES = 512
_LOGS_OF_INSTANCE = 64 * 2**20
"""Bytes: what rotating keeps of one instance's log."""
_LEAST_SHARED = 2**30
"""Bytes in /dev/shm; vLLM's and NCCL's buffers between the processes of one instance."""
_MODEL_ON_DISK = 10 * 2**30


def _open_files(case: Case) -> Iterator[Fault]:
    """Fewer open files than requests need."""
    limit, wanted = case.inventory.limits.open_files, case.profile.proxy.admission.concurrency
    needed = wanted * _FILES_PER_REQUEST + _OTHER_FILES
    if limit is not None and limit < needed:
        yield Fault(
            "proxy.admission.concurrency",
            f"{wanted} requests at a time need about {needed} open files, this user may open {limit}",
            f"raise the limit (ulimit -Hn {needed}, LimitNOFILE in a unit), or lower it to "
            f"{max(1, (limit - _OTHER_FILES) // _FILES_PER_REQUEST)}",
            "the proxy would refuse connections before it refuses requests",
            {"proxy.admission.concurrency": str(wanted), "open files": str(limit)},
            Severity.WARNING,
        )


def _shared_memory(case: Case) -> Iterator[Fault]:
    """Too little shared memory for the processes of one instance."""
    free = case.inventory.limits.shared_memory
    several = [role for role, settings in case.profile.roles.items() if settings.devices_per_instance > 1]
    if free is not None and several and free < _LEAST_SHARED:
        yield Fault(
            f"roles.{several[0]}.tensor_parallel",
            f"the processes of one instance talk through /dev/shm, where {_human(free)} are free",
            f"give it {_human(_LEAST_SHARED)} or more (docker run --shm-size, a memory-backed emptyDir)",
            "NCCL and vLLM would end with a bus error",
            severity=Severity.WARNING,
        )


def _disk(case: Case) -> Iterator[Fault]:
    """A disk too small for a model that is to be fetched, or for logs."""
    free = case.inventory.limits.disk
    if free is None:
        return
    away = [
        (key_in_pool(pool, key), hub_id)
        for pool, each in case.profile.by_pool().items()
        for key, hub_id in hub_ids(each)
        if folder_of(Checkpoint(hub_id), case.environ) is None
    ]
    if away and free < _MODEL_ON_DISK:
        key, hub_id = away[0]
        what = f"{hub_id} is to be fetched, and {_human(free)} are free on the disk"
        yield Fault(key, what, "make room, or set HF_HOME to a larger disk", severity=Severity.WARNING)
    if free < (logs := _LOGS_OF_INSTANCE * len(case.plan.instance_names())):
        what = f"{_human(free)} are free on the disk, and logs take up to {_human(logs)}"
        yield Fault("roles", what, "make room", "a full disk stops logs and state", severity=Severity.WARNING)


def _gpu_memory(case: Case) -> Iterator[Fault]:
    """vLLM refuses to start when less is free than the share it shall take."""
    gpus = {gpu.uuid: gpu for gpu in case.inventory.gpus}
    for engine in case.plan.engines:
        settings = case.settings_of(engine)
        share = settings.gpu_memory_utilization or DEFAULT_SHARE
        wants = "shall take" if settings.kv_cache_memory is None else "starts only with"
        for device in engine.devices:
            gpu = gpus.get(device)
            if gpu is not None and gpu.memory_free < share * gpu.memory_total:
                yield Fault(
                    case.key_of(engine, "gpu_memory_utilization"),
                    f"{engine.name} {wants} {share:g} of GPU {gpu.index} ({_human(int(share * gpu.memory_total))}), "
                    f"but {_human(gpu.memory_free)} of {_human(gpu.memory_total)} are free",
                    f"end what uses it (nvidia-smi shows it), choose other devices, or at most "
                    f"{gpu.memory_free / gpu.memory_total * 0.99:.2f}",
                )


def _driver(case: Case) -> Iterator[Fault]:
    """A driver older than the engine."""
    limits = case.inventory.limits
    if case.profile.device is not Device.CUDA or limits.driver_cuda is None or limits.engine_cuda is None:
        return
    if limits.driver_cuda // 1000 < limits.engine_cuda:
        supported = f"{limits.driver_cuda // 1000}.{limits.driver_cuda % 1000 // 10}"
        yield Fault(
            "device",
            f"the engine is built for CUDA {limits.engine_cuda}, the driver supports {supported}",
            f"update NVIDIA's driver, or install an engine built for CUDA {limits.driver_cuda // 1000}",
        )


def _human(size: int) -> str:
    return ByteSize(size).human_readable()


RULES = (
    Rule("host/open-files", Layer.HOST, "each connection is an open file", _open_files),
    Rule("host/shared-memory", Layer.HOST, "containers have 64 MB of it unless told otherwise", _shared_memory),
    Rule("host/disk", Layer.HOST, "the operating system", _disk, of_all_pools=True),
    Rule(
        "host/gpu-memory",
        Layer.HOST,
        "vLLM 0.32: free memory on the device is less than desired",
        _gpu_memory,
        of_all_pools=True,
    ),
    Rule("host/driver", Layer.HOST, "NVIDIA: a driver runs engines of its own CUDA major version and older", _driver),
)
