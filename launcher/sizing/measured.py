"""Decision: what an engine says of its memory when it starts, read from its log, and how far off the plan was."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from launcher.sizing.size import InstanceSize

_GIB = 2**30
_ROUNDED = 0.005 * _GIB
"""vLLM logs GiB with two decimals."""

# Log lines of vLLM 0.32.
_WEIGHTS = re.compile(r"Model loading took ([\d.]+) GiB")
_TOKENS = re.compile(
    r"KV cache size: ([\d,]+) tokens(?:, Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x)?"
)
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
_KV_MEMORY = re.compile(
    r"(?:Available KV cache memory: (?=[\d.]+ GiB)|(?:Explicitly|Auto) set \((?=[\d.]+/)"
    r"|reserved (?=[\d.]+ GiB memory for KV))([\d.]+)"
)
_USAGE = re.compile(
    r"Actual usage is ([\d.]+) GiB for consumed memory \(weights \+ non-torch\), ([\d.]+) GiB for peak activation, "
    r"and ([\d.]+) GiB for CUDAGraph memory"
)
_GRAPHS = re.compile(r"Graph capturing finished in [\d.]+ secs, took ([\d.]+) GiB")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one start of an engine told; ``None``: it did not say. Sizes are bytes of the device that has most."""

    weights: int | None = None
    consumed: int | None = None
    """Weights and libraries."""
    activations: int | None = None
    """At the peak, with what is set apart for graphs."""
    graphs: int | None = None
    kv_memory: int | None = None
    tokens: int | None = None
    length: int | None = None
    """Tokens of the requests that are counted."""
    concurrency: float | None = None


@dataclass(frozen=True, slots=True)
class Deviation:
    """One figure as planned and as it came."""

    figure: str
    planned: float
    real: float
    unit: str
    """``tokens``, ``requests`` or ``bytes``."""

    @property
    def off(self) -> float:
        """By which share the plan was above (positive) or below what came."""
        return (self.planned - self.real) / self.real if self.real else 0.0


def measured_of(lines: Iterable[str]) -> Measured:
    """From the log of one start."""
    text = "\n".join(lines)
    weights, memory, graphs = (_all(pattern, text) for pattern in (_WEIGHTS, _KV_MEMORY, _GRAPHS))
    usage = _USAGE.findall(text)
    size = _TOKENS.search(text)
    concurrency = _CONCURRENCY.search(text)
    return Measured(
        weights=max(weights, default=None),
        consumed=max((_bytes(each[0]) for each in usage), default=None),
        activations=max((_bytes(each[1]) for each in usage), default=None),
        graphs=max(graphs, default=None),
        kv_memory=min(memory, default=None),
        tokens=None if size is None else _number(size[1]),
        length=None if concurrency is None else _number(concurrency[1]),
        concurrency=None if concurrency is None else float(concurrency[2]),
    )


def deviations(planned: InstanceSize, real: Measured) -> Iterator[Deviation]:
    """Every figure that both know."""
    weights = sum(part.bytes for part in planned.parts if part.name in {"weights", "draft"})
    if real.weights is not None and weights:
        yield Deviation("weights", weights, real.weights, "bytes")
    if planned.kv is None:
        return
    if real.kv_memory is not None:
        yield Deviation("KV cache", planned.kv.bytes, real.kv_memory, "bytes")
    if real.tokens is not None:
        yield Deviation("KV tokens", planned.kv.tokens, real.tokens, "tokens")
    if real.concurrency is not None and real.length == planned.kv.length:
        yield Deviation("requests at once", planned.kv.concurrency, real.concurrency, "requests")


def sentence(instance: str, found: Iterable[Deviation]) -> str:
    """One line for a person; empty when nothing can be compared."""
    told = [_clause(each) for each in found if each.unit != "requests"]
    return f"{instance}: {'; '.join(told)}" if told else ""


def _clause(each: Deviation) -> str:
    if each.unit == "bytes":
        real, planned = (f"{value / _GIB:.2f} GiB" for value in (each.real, each.planned))
        is_same = abs(each.planned - each.real) <= _ROUNDED
    else:
        real, planned = (f"{value:,.0f} {each.unit}" for value in (each.real, each.planned))
        is_same = each.planned == each.real
    return (
        f"{each.figure} {real} as planned" if is_same else f"{each.figure} {real}, planned {planned} ({each.off:+.1%})"
    )


def _all(pattern: re.Pattern[str], text: str) -> list[int]:
    return [_bytes(found) for found in pattern.findall(text)]


def _bytes(text: str) -> int:
    return round(float(text) * _GIB)


def _number(text: str) -> int:
    return int(text.replace(",", ""))
