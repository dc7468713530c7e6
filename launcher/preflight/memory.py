"""Does it fit? Each engine beside the others on its devices, its draft, and at least one request."""

from collections.abc import Iterable, Iterator

from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import Device
from launcher.sizing.deployment import SHOWN, DeploymentSize, deployment_size, wanted
from launcher.sizing.models import look_up
from launcher.sizing.size import InstanceSize, Verdict

_MIB = 2**20


def _machine(case: Case) -> Iterator[Fault]:
    """On a CPU: a sum larger than the machine's free memory."""
    if case.plan.device is not Device.CPU:
        return
    size = case.once(_size)
    for device in size.devices:
        if device.verdict is Verdict.DOES_NOT_FIT:
            parts = "; ".join(f"{each.name} {_parts(each)}" for each in size.instances)
            yield Fault(
                "roles",
                f"not enough memory: {len(size.instances)} engines need about {_human(device.needed)} ({parts}), "
                f"{_human(device.free)} are free",
                "lower roles.*.kv_cache_memory or roles.*.replicas",
            )


def _device(case: Case) -> Iterator[Fault]:
    """On CUDA: engines that together take more of a GPU than is free of it.

    ``devices/shares`` judges shares that are more than a whole, ``host/gpu-memory`` one that is more than is free.
    """
    if case.plan.device is not Device.CUDA:
        return
    size = case.once(_size)
    explicit = {each.name for each in size.instances if each.kv is not None and each.kv.error == 0}
    for device in size.devices:
        is_whole = device.needed <= device.total * SHOWN and len(device.instances) > 1
        if device.verdict is Verdict.DOES_NOT_FIT and (is_whole or explicit.intersection(device.instances)):
            together = f"{', '.join(device.instances)} take {_human(device.needed)} of {device.name}"
            yield Fault(
                "roles",
                f"{together}, of whose {_human(device.total)} {_human(device.free)} are free",
                "lower roles.*.gpu_memory_utilization so that the sum over all engines on it fits, or free the device",
                why="an engine takes its whole share when it starts, and ends where that is not free",
            )


def _draft(case: Case) -> Iterator[Fault]:
    """A draft that does not fit beside its target, which alone would."""
    for each in _once(case.once(_size)):
        draft = next((part for part in each.parts if part.name == "draft"), None)
        if each.verdict is Verdict.DOES_NOT_FIT and each.budget and draft and _fits_without(each, draft.bytes):
            yield Fault(
                "speculation.draft",
                f"the draft's {_human(draft.bytes)} do not fit beside the model: {each.name} needs {_parts(each)} of "
                f"the {_human(each.budget)} that it may use, and {_human(each.kv.needed) if each.kv else ''} for one "
                "request",
                "choose a smaller or quantized draft, or lower model.max_model_len",
            )


def _fits(case: Case) -> Iterator[Fault]:
    """Weights and what else is needed larger than what the engine may use of a device."""
    for each in _once(case.once(_size)):
        if each.budget is not None and case.plan.device is Device.CUDA and each.fixed > each.budget:
            yield Fault(
                f"roles.{each.role}",
                f"{each.name} needs {_parts(each)} on each device, {_human(each.fixed)} together, and may use "
                f"{_human(each.budget)} of it",
                "raise tensor_parallel or gpu_memory_utilization, or serve a checkpoint of fewer bits",
                why="no memory is left for the KV cache, so the engine ends when it starts",
            )


def _one_request(case: Case) -> Iterator[Fault]:
    """A KV cache that does not hold one request of the longest kind."""
    for each in _once(case.once(_size)):
        kv = each.kv
        if kv is None or kv.needed <= kv.bytes or (kv.error and each.budget and each.fixed > each.budget):
            continue
        explicit = kv.error == 0
        key = f"roles.{each.role}.kv_cache_memory" if explicit else f"roles.{each.role}"
        most = f"a request of {kv.longest} tokens at most, but one may have {kv.length} (model.max_model_len)"
        ways = (
            "" if explicit else ", raise tensor_parallel or gpu_memory_utilization, or set quantization.kv_cache_dtype"
        )
        give = f"give at least {_human_up(kv.needed)} or " if explicit else ""
        yield Fault(
            key,
            f"{_human(kv.bytes)} hold {most}" if explicit else f"the KV cache of about {_human(kv.bytes)} holds {most}",
            f"{give}lower model.max_model_len{ways}",
        )


def _tight(case: Case) -> Iterator[Fault]:
    """What fits only if the estimates hold."""
    size = case.once(_size)
    for each in _once(size):
        if each.verdict is Verdict.TIGHT and each.budget and case.plan.device is Device.CUDA:
            yield Fault(
                f"roles.{each.role}",
                f"{each.name} fits only without the margin of {size.margin:.0%}: {_parts(each)} of "
                f"{_human(each.budget)}",
                "look at `launcher size`, and leave more room if it does not start",
                why="activations, graphs and libraries are estimates",
                severity=Severity.WARNING,
            )


def not_judged(case: Case) -> Iterator[str]:
    """Why the memory of an engine cannot be judged here."""
    for each in _once(case.once(_size)):
        if each.card is None:
            yield (
                f"memory of {each.role}: how much its devices have is not known here; say it by "
                f"roles.{each.role}.device_memory, e.g. 80GiB (`launcher size` shows what usual ones would hold)"
            )
        elif each.verdict is Verdict.UNKNOWN:
            yield f"memory of {each.role}: {'; '.join(each.unknown) or 'its size is not known'}"


def _size(case: Case) -> DeploymentSize:
    return deployment_size(case.plan, case.inventory, look_up(wanted(case.plan), case.environ))


def _once(size: DeploymentSize) -> Iterable[InstanceSize]:
    """One engine of each role: those of a role are alike."""
    return {each.role: each for each in reversed(size.instances)}.values()


def _fits_without(each: InstanceSize, draft: int) -> bool:
    needed = each.kv.needed if each.kv else 0
    return each.fixed - draft + needed <= (each.budget or 0)


def _parts(each: InstanceSize) -> str:
    parts = [f"{part.name} {_human(part.bytes)}" for part in each.parts]
    if each.kv is not None and each.kv.error == 0:
        parts.append(f"KV cache {_human(each.kv.bytes)}")
    return " + ".join(parts)


def _human(size: int) -> str:
    return f"{size / 2**30:.1f}GiB" if size >= 2**30 else f"{size / _MIB:.1f}MiB"


def _human_up(size: int) -> str:
    """Not less than it is, as a profile takes it."""
    return f"{-(-size // _MIB)}MiB" if size >= 64 * _MIB else f"{-(-size // 2**10)}KiB"


_MEASURED = "the engine's own arithmetic, and estimates from measured starts (docs/sizing.md)"
RULES = (
    Rule(
        "memory/machine",
        Layer.MEMORY,
        "measured with vLLM 0.32 on a CPU",
        _machine,
        of_all_pools=True,
        needs_model=True,
    ),
    Rule("memory/device", Layer.MEMORY, "vLLM's request_memory", _device, of_all_pools=True, needs_model=True),
    Rule("memory/draft", Layer.MEMORY, _MEASURED, _draft, needs_model=True),
    Rule("memory/weights", Layer.MEMORY, _MEASURED, _fits, needs_model=True),
    Rule("memory/one-request", Layer.MEMORY, "vLLM's check of one request", _one_request, needs_model=True),
    Rule("memory/tight", Layer.MEMORY, _MEASURED, _tight, needs_model=True),
)
