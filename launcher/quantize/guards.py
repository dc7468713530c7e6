"""Decision: what the quantizer does not check by itself, before and after."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ByteSize

from launcher.quantize.outcome import Guard
from launcher.quantize.scheme import Scheme

_FALLBACKS = 0.05
"""Share of layers that may be rounded to nearest instead of by GPTQ."""
_SHOWN = 5
_RATIO: Mapping[Scheme, float] = {Scheme.INT8: 0.5, Scheme.FP8: 0.5, Scheme.INT4: 0.25}
"""Bytes of a quantized weight per byte of 16 bits."""
_SLACK = 1.15
"""Scales, and names in the file's header."""
_MARGIN = 1.2


def disk_needed(model: int, out: int) -> int:
    """Bytes: the candidates of two attempts."""
    return int(2 * out * _MARGIN) + model // 100


def memory_needed(model: int, records: int, tokens: int, hidden: int, widest: int) -> int:
    """Bytes of RAM: the model, cached activations of all records in float32's half, one layer's Hessian."""
    return int(model * _MARGIN) + records * tokens * hidden * 2 + widest * widest * 4


def expected_size(total: int, quantized: int, scheme: Scheme) -> int:
    """Bytes of a checkpoint of ``total`` bytes in 16 bits, ``quantized`` bytes of which are linear weights."""
    return int((total - quantized) + quantized * _RATIO[scheme])


def after(
    result: Mapping[str, Any],
    planned: Collection[str],
    *,
    experts: Collection[str],
    expected: int,
) -> Iterator[Guard]:
    """Of a candidate.

    ``experts``: beginnings of names of mixtures that the original stores as one tensor; of each, something must be
    quantized. ``expected``: bytes.
    """
    quantized = frozenset(result["quantized"])
    missing = sorted(set(planned) - quantized)
    more = sorted(name for name in quantized - set(planned) if not name.startswith(tuple(experts)))
    lost = [each for each in experts if not any(name.startswith(each) for name in quantized)]
    if missing or lost:
        left = missing + lost
        text = f"{len(left)} layers that should be quantized are not ({_some(left)}): the quantizer does not know them"
    elif more:
        text = f"{len(more)} layers are quantized that should not be ({_some(more)})"
    else:
        text = f"all {len(quantized)} layers that were planned, and no other"
    yield Guard("quantized as planned", not (missing or more or lost), text)
    strange = result["strange"]
    yield Guard(
        "sound numbers",
        not strange,
        f"{len(strange)} tensors are not sound ({_some(strange)}): records may not reach their layers; use more"
        if strange
        else "no scale or weight is NaN, infinite or zero",
    )
    share = result["fallbacks"] / result["fallbacks_of"] if result["fallbacks_of"] else 0.0
    yield Guard(
        "calibrated, not only rounded",
        share <= _FALLBACKS,
        f"{result['fallbacks']} of {result['fallbacks_of']} layers were rounded to nearest because the records do "
        "not suffice (Hessian not invertible): use more, or more varied ones"
        if result["fallbacks"]
        else "no layer fell back to rounding to nearest",
    )
    bytes_, limit = result["bytes"], int(expected * _SLACK)
    yield Guard(
        "size",
        bytes_ <= limit,
        f"{_human(bytes_)}, where {_human(expected)} were expected"
        + ("" if bytes_ <= limit else ": most of the model is still in 16 bits"),
    )
    if result["idle_experts"]:
        told = "; ".join(f"layer {layer}: {_some(map(str, idle))}" for layer, idle in result["idle_experts"].items())
        yield Guard(
            "experts",
            False,
            f"the records send no token to some experts ({told}), so these are calibrated by chance: use records of "
            "more kinds, or more of them, or go on with --force",
        )


def _some(names: Iterable[str]) -> str:
    found = [*names]
    return ", ".join(found[:_SHOWN]) + (", ..." if found[_SHOWN:] else "")


def _human(size: int) -> str:
    return ByteSize(size).human_readable(decimal=True)
