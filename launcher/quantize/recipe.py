"""Decision: what the worker is told to do, attempt by attempt."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from launcher.quantize.scheme import Scheme
from launcher.quantize.units import Parts, Unit

_STRENGTH = 0.8
"""Of SmoothQuant: how much of the activations' outliers moves into the weights; llm-compressor's example for W8A8."""
_BUDGET = 0.1
"""Of the model's linear weights, that may stay finer at the first try, and as much again at the second."""


class Algorithm(StrEnum):
    """How weights are rounded."""

    RTN = "rtn"
    GPTQ = "gptq"
    AWQ = "awq"
    SMOOTHQUANT_GPTQ = "smoothquant+gptq"


TITLES: Mapping[Algorithm, str] = {
    Algorithm.RTN: "round to nearest",
    Algorithm.GPTQ: "GPTQ",
    Algorithm.AWQ: "AWQ",
    Algorithm.SMOOTHQUANT_GPTQ: "SmoothQuant + GPTQ",
}


FITTING: Mapping[Scheme, tuple[Algorithm, ...]] = {
    Scheme.INT8: (Algorithm.SMOOTHQUANT_GPTQ, Algorithm.GPTQ, Algorithm.RTN),
    Scheme.INT4: (Algorithm.GPTQ, Algorithm.AWQ, Algorithm.RTN),
    Scheme.FP8: (Algorithm.RTN,),
}
"""The usual one first. AWQ scales weights for activations in 16 bits, SmoothQuant for activations in eight; FP8 is not
calibrated."""


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt: an algorithm, and the share of the weights that may be kept finer."""

    algorithm: Algorithm
    budget: float = 0.0


def steps(scheme: Scheme, *, fast: bool, accelerated: bool, given: Algorithm | None) -> Iterator[Step]:
    """In their order: a better algorithm costs nothing when it is served, so it comes before finer weights.

    ``accelerated``: whether the worker has a GPU; AWQ's search takes hours without one.
    """
    tried = [Algorithm.RTN] if fast else []
    tried += [given or FITTING[scheme][0]]
    if scheme is Scheme.INT4 and given is None and accelerated:
        tried.append(Algorithm.AWQ)
    yield from map(Step, dict.fromkeys(tried))
    last = tried[-1]
    yield Step(last, _BUDGET)
    yield Step(last, 2 * _BUDGET)


def kept(scores: Mapping[str, float], units: Sequence[Unit], budget: float) -> tuple[str, ...]:
    """The units that hurt most for their size, until half of the harm or the budget is used.

    ``scores``: nats of KL that each unit costs alone; their sum predicts what all cost together well enough.
    """
    total, size = sum(scores.values()), sum(unit.parameters for unit in units)
    chosen, spared, used = [], 0.0, 0
    for unit in sorted(units, key=lambda unit: -scores.get(unit.name, 0.0) / unit.parameters):
        if spared * 2 >= total:
            break
        if used + unit.parameters <= budget * size:
            chosen.append(unit.name)
            spared, used = spared + scores.get(unit.name, 0.0), used + unit.parameters
    return tuple(chosen)


def recipe(
    step: Step, scheme: Scheme, parts: Parts, group: int | None, finer: Collection[str] = (), *, has_int8: bool = True
) -> Mapping[str, Any]:
    """For the worker's step ``quantize``.

    ``finer``: units that get eight bits instead of four where the hardware has INT8, and else stay in 16.
    """
    coarse = [unit for unit in parts.units if unit.name not in finer]
    fine = [unit for unit in parts.units if unit.name in finer]
    told: dict[str, Any] = {
        "scheme": scheme.value,
        "group": group if scheme is Scheme.INT4 else None,
        "symmetric": True,
    }
    ignore = [*parts.ignored]
    if not fine:
        groups = [{**told, "layers": None}]
    elif scheme is Scheme.INT4 and has_int8:
        eight = {"scheme": Scheme.INT8.value, "group": None, "symmetric": True, "layers": _layers(fine)}
        groups = [{**told, "layers": _layers(coarse)}, eight]
    else:
        groups = [{**told, "layers": None}]
        ignore += _layers(fine)
    return {"algorithm": step.algorithm.value, "strength": _STRENGTH, "groups": groups, "ignore": ignore}


def planned(recipe: Mapping[str, Any], parts: Parts) -> frozenset[str]:
    """Names of the layers that must come out quantized."""
    every = {layer.name for unit in parts.units for layer in unit.layers}
    named = [layers for group in recipe["groups"] if (layers := group["layers"]) is not None]
    return frozenset({name for layers in named for name in layers} if named else every - {*recipe["ignore"]})


def _layers(units: Sequence[Unit]) -> list[str]:
    return [layer.name for unit in units for layer in unit.layers]
