"""Which GPUs the instances of a plan use, and whether they are there."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from launcher.gpus import DEFAULT_SHARE
from launcher.plan import EngineInstance
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import Device


def _missing(case: Case) -> Iterator[Fault]:
    """GPUs that are planned but not there."""
    wanted = {device for engine in case.plan.engines for device in engine.devices}
    known = {name for gpu in case.inventory.gpus for name in (gpu.uuid, str(gpu.index))}
    naming = {str(device): each for each in case.plan.engines for device in case.settings_of(each).devices or ()}
    if strange := sorted((wanted - known) & naming.keys()):
        yield Fault(
            case.key_of(naming[strange[0]], "devices"),
            f"this machine has no GPU {', '.join(strange)}",
            f"choose among {there}"
            if (there := ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in case.inventory.gpus))
            else "run it where they are (nvidia-smi lists none here); `launcher plan` and `launcher size` need none",
        )
    elif wanted - known:
        yield Fault(
            "device",
            f"the plan needs {len(wanted)} GPU(s) and this machine shows {len(case.inventory.gpus)}",
            "run it where they are, lower roles.*.replicas or tensor_parallel, or try the profile demo",
        )


def _shared(case: Case) -> Iterator[Fault]:
    """A device of several instances must have room for all of them."""
    for device, engines in _by_device(case).items():
        if len(engines) < 2:
            continue
        shares = {engine.name: _share(case, engine) for engine in engines}
        together = " + ".join(f"{share:g} ({name})" for name, share in shares.items() if share is not None)
        total = sum(share for share in shares.values() if share is not None)
        if total > 1:
            yield Fault(
                case.key_of(engines[-1], "gpu_memory_utilization"),
                f"GPU {device} is used by {len(engines)} instances that take {together} = {total:g} of its memory",
                "give each a share, 1 at most together, or other devices",
                "the second would find no memory, or take that of the first for its own",
                {name: f"{share:g}" for name, share in shares.items() if share is not None},
            )


def _free_at_start(case: Case) -> Iterator[Fault]:
    """An engine with a KV cache of a given size that wants more of a device to be free than others leave of it.

    Engines on one device start one after another, in the plan's order.
    """
    for device, engines in _by_device(case).items():
        taken: dict[str, float] = {}
        for engine in engines:
            settings = case.settings_of(engine)
            wanted = float(settings.gpu_memory_utilization or DEFAULT_SHARE)
            before = sum(taken.values())
            if settings.kv_cache_memory is not None and before and wanted + before > 1:
                yield Fault(
                    case.key_of(engine, "gpu_memory_utilization"),
                    f"{engine.name} starts only if {wanted:g} of GPU {device} is free, also with kv_cache_memory, and "
                    f"{' and '.join(taken)} take at least {before:.2f} of it",
                    f"set it to less than {1 - before:.2f}: with kv_cache_memory it says only what must be free",
                    "vLLM refuses to start when less is free",
                )
            taken[engine.name] = _least(engine, wanted)


def _least(engine: EngineInstance, share: float) -> float:
    """What an engine takes of its device at least: its share, or its KV cache without all that is beside it."""
    if engine.kv_cache_memory is None:
        return share
    return engine.kv_cache_memory / engine.device_memory if engine.device_memory else 0.0


def _twice_in_one(case: Case) -> Iterator[Fault]:
    """A device that is named twice for one instance."""
    for engine in case.plan.engines:
        if twice := sorted({device for device in engine.devices if engine.devices.count(device) > 1}):
            what = f"{engine.name} is given {', '.join(twice)} twice"
            yield Fault(f"roles.{engine.role}.devices", what, "name each device of an instance once")


def _mig(case: Case) -> Iterator[Fault]:
    """vLLM splits an instance over whole GPUs only, and a MIG slice has no peer access to another one."""
    for role, settings in case.profile.roles.items():
        slices = [device for device in settings.devices or () if str(device).upper().startswith("MIG-")]
        if slices and settings.devices_per_instance > 1:
            yield Fault(
                f"roles.{role}.devices",
                f"{slices[0]} is a part of a GPU (MIG), and an instance of {settings.devices_per_instance} devices "
                "cannot use several of them",
                "use one slice per instance (tensor_parallel: 1), or whole GPUs",
            )
        elif slices and case.profile.roles.prefill is not None:
            yield Fault(
                f"roles.{role}.devices",
                f"{slices[0]} is a part of a GPU (MIG), which has no direct way to another one",
                "prove the pairs (launcher prove), and compare duet_pair_kv_bytes_per_second with whole GPUs",
                "KV caches go through the host's memory",
                severity=Severity.WARNING,
            )


def _by_device(case: Case) -> Mapping[str, list[EngineInstance]]:
    found = defaultdict(list)
    for engine in case.plan.engines:
        for device in engine.devices:
            found[device].append(engine)
    return found


def _share(case: Case, engine: EngineInstance) -> float | None:
    """Of a device's memory; ``None`` where the KV cache has a size of its own, which the memory layer adds up."""
    settings = case.settings_of(engine)
    if settings.kv_cache_memory is not None or case.profile.device is Device.CPU:
        return None
    return float(settings.gpu_memory_utilization or DEFAULT_SHARE)


RULES = (
    Rule("devices/there", Layer.HOST, "NVIDIA's driver", _missing, of_all_pools=True),
    Rule(
        "devices/shares",
        Layer.STATIC,
        "vLLM takes its share of the whole device, whoever else is there",
        _shared,
        of_all_pools=True,
    ),
    Rule(
        "devices/free-at-start",
        Layer.STATIC,
        "vLLM 0.32: request_memory, whatever sizes the KV cache",
        _free_at_start,
        of_all_pools=True,
    ),
    Rule("devices/twice", Layer.STATIC, "CUDA_VISIBLE_DEVICES names each device once", _twice_in_one),
    Rule("devices/mig", Layer.STATIC, "NVIDIA's MIG user guide: no peer-to-peer between slices", _mig),
)
