"""Decision: what can be known before anything starts: disk, memory, group sizes."""

from collections.abc import Iterator

from pydantic import ByteSize

from launcher.errors import QuantizeError
from launcher.gpus import capability
from launcher.inventory import Gpu
from launcher.quantize.guards import disk_needed, expected_size, memory_needed
from launcher.quantize.original import Original
from launcher.quantize.request import Request
from launcher.quantize.scheme import Scheme, Target
from launcher.quantize.units import GROUPS, group_size, odd_layers

_LONGEST = 2048
"""Tokens of a record, for the estimate of memory, where records are not read yet."""


def target_of(given: str | None, gpus: tuple[Gpu, ...]) -> Target:
    """``cpu``, or a GPU by its name; ``None``: what this machine has."""
    name = given or (gpus[0].name if gpus else "cpu")
    if name.strip().lower() == "cpu":
        return Target("CPU", True)
    found = capability(name)
    if given is not None and found is None:
        raise QuantizeError(
            f"--target {given!r} is not known: write cpu, or a GPU as its driver names it, e.g. 'NVIDIA H100' or L40S"
        )
    return Target(name, False, found)


def most_tokens(asked: int, original: Original, spare: int) -> int:
    """Of a record: as asked, or as many as leave ``spare`` of what the engine takes.

    Raises :class:`QuantizeError` for a model that takes hardly any.
    """
    context = original.folder.text.get("max_position_embeddings")
    if not isinstance(context, int):
        return asked
    if context <= spare:
        raise QuantizeError(f"{original.path} takes {context} tokens, and more than {spare} are needed to judge it")
    return min(asked, context - spare)


def notes(
    original: Original, scheme: Scheme, request: Request, tensor_parallel: int, *, disk: int, memory: int
) -> Iterator[str]:
    """What to know; raises :class:`QuantizeError` for what cannot go well. ``disk``, ``memory``: free bytes."""
    out = expected_size(original.size, original.linear_size, scheme)
    needed = disk_needed(original.size, out)
    if disk < needed:
        raise QuantizeError(
            f"{request.out.parent} has {_human(disk)} free, and {_human(needed)} are needed for two checkpoints of "
            f"{_human(out)}: name another --out"
        )
    widest = max(layer.inputs for unit in original.parts.units for layer in unit.layers)
    tokens = min(request.max_tokens, _LONGEST)
    hidden = original.folder.text.get("hidden_size")
    wanted = memory_needed(original.size, request.records, tokens, hidden if isinstance(hidden, int) else 0, widest)
    if memory < original.size:
        raise QuantizeError(
            f"{_human(memory)} of memory are free, and the model takes {_human(original.size)}: use a larger machine"
        )
    if memory < wanted:
        yield (
            f"it may take {_human(wanted)} of memory, {_human(memory)} are free: when it ends, use fewer or shorter "
            "records (--records, --max-tokens)"
        )
    if scheme is Scheme.INT4:
        yield from _of_groups(original, tensor_parallel)


def _of_groups(original: Original, tensor_parallel: int) -> Iterator[str]:
    size = group_size(original.parts.units, tensor_parallel)
    if size == GROUPS[0]:
        return
    odd = odd_layers(original.parts.units, tensor_parallel, GROUPS[0])
    each = f" on each of {tensor_parallel} devices" if tensor_parallel > 1 else ""
    told = f"groups of {size}" if size else "one scale for a whole row"
    yield f"{told}, since groups of {GROUPS[0]} do not divide the inputs of {len(odd)} layers{each} (e.g. {odd[0]})"


def _human(size: int) -> str:
    return ByteSize(size).human_readable(decimal=True)
