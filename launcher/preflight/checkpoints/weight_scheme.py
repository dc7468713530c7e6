"""Decision: how a ``quantization_config`` says that each linear layer is stored."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from launcher.model_folder import ModelFolder

_KEPT = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules")
_AS_FILED = frozenset({"gptq", "awq", "auto-round", "inc"})
"""Methods of which the engine takes from the files which layers are quantized."""


@dataclass(frozen=True, slots=True)
class WeightScheme:
    """Of one layer."""

    method: str
    bits: int
    is_integer: bool = True
    group: int | None = None
    """Weights of one output that share a scale; ``None``: all of them do."""
    block: tuple[int, int] | None = None
    """Outputs and inputs of a square that shares a scale."""
    activation_bits: int = 16
    symmetric: bool = True

    @property
    def is_weight_only(self) -> bool:
        """Integers that are computed with 16-bit activations."""
        return self.is_integer and self.activation_bits == 16


def method_of(folder: ModelFolder) -> str | None:
    """``gptq``, ``awq``, ``compressed-tensors``, ``fp8``...; ``None``: not quantized."""
    told = str(folder.quantization.get("quant_method") or "").lower().replace("_", "-")
    return told.removesuffix("-marlin") or None


def schemes_of(folder: ModelFolder) -> Callable[[str], WeightScheme | None]:
    """By the name of a layer; ``None``: it stays as it is, or nobody says how it is stored."""
    quantization, method = folder.quantization, method_of(folder)
    if method == "compressed-tensors":
        return _of_groups(quantization)
    scheme = _of_all(quantization, method)
    if scheme is None or method in _AS_FILED:
        return lambda module: scheme
    kept = Names(kept_of(quantization), exact=False)
    return lambda module: None if kept.mean(module) else scheme


def _of_all(quantization: Mapping[str, Any], method: str | None) -> WeightScheme | None:
    if method in {"gptq", "awq"}:
        bits, group = (_number(quantization, *keys) for keys in (("bits", "w_bit"), ("group_size", "q_group_size")))
        symmetric = quantization.get("sym") is not False if method == "gptq" else not quantization.get("zero_point")
        return WeightScheme(method, bits or 4, group=group if group and group > 0 else None, symmetric=symmetric)
    if method in {"fp8", "fbgemm-fp8"}:
        return WeightScheme("fp8", 8, is_integer=False, block=_pair(quantization.get("weight_block_size")))
    return None


def kept_of(quantization: Mapping[str, Any]) -> list[str]:
    """Names and patterns of layers that stay as they are."""
    return [str(name) for key in _KEPT if isinstance(names := quantization.get(key), list) for name in names]


def method_is_exact(quantization: Mapping[str, Any]) -> bool:
    """Whether a name means one layer only, not all in whose names it stands."""
    return str(quantization.get("quant_method")).replace("_", "-") == "compressed-tensors"


class Names:
    """Names of layers, and expressions behind ``re:``."""

    def __init__(self, names: Iterable[str], *, exact: bool) -> None:
        told = [*names]
        self._names = frozenset(name for name in told if not name.startswith("re:"))
        self._parts = () if exact else tuple(self._names)
        self._patterns = [*_compiled(name[3:] for name in told if name.startswith("re:"))]

    def mean(self, module: str) -> bool:
        """Whether one of them means the module; unless exact, a part of its name is enough."""
        return (
            module in self._names
            or any(part in module for part in self._parts)
            or any(pattern.match(module) for pattern in self._patterns)
        )


def _compiled(patterns: Iterable[str]) -> Iterator[re.Pattern[str]]:
    for pattern in patterns:
        with suppress(re.error):
            yield re.compile(pattern)


def groups_of(quantization: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The ``config_groups`` of compressed-tensors that say something of weights."""
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        if isinstance(group, Mapping) and isinstance(group.get("weights"), Mapping):
            yield group


def strategy_of(weights: Mapping[str, Any]) -> str:
    """What shares a scale: ``group``, ``channel``, ``tensor``, ``block``..., as the library fills it in."""
    group = weights.get("group_size")
    inferred = "tensor" if group is None else "channel" if group == -1 else "group"
    return str(weights.get("strategy") or inferred)


def _of_groups(quantization: Mapping[str, Any]) -> Callable[[str], WeightScheme | None]:
    kept = Names(kept_of(quantization), exact=True)
    groups = [
        (Names(targets := _targets(each), exact=True), _is_of_class(targets), _of_group(each))
        for each in groups_of(quantization)
    ]
    of_class = next((scheme for _, is_class, scheme in groups if is_class), None)

    def scheme_of(module: str) -> WeightScheme | None:
        if kept.mean(module):
            return None
        return next((scheme for names, _, scheme in groups if names.mean(module)), of_class)

    return scheme_of


def _of_group(group: Mapping[str, Any]) -> WeightScheme:
    weights, inputs = group["weights"], group.get("input_activations")
    size = weights.get("group_size")
    return WeightScheme(
        "compressed-tensors",
        _number(weights, "num_bits") or 8,
        is_integer=weights.get("type", "int") == "int",
        group=size if isinstance(size, int) and size > 0 and "group" in strategy_of(weights) else None,
        block=_pair(weights.get("block_structure")) if strategy_of(weights) == "block" else None,
        activation_bits=(_number(inputs, "num_bits") or 16) if isinstance(inputs, Mapping) else 16,
        symmetric=weights.get("symmetric") is not False,
    )


def _is_of_class(targets: Iterable[str]) -> bool:
    """Whether a group is for all linear layers."""
    return any(target.lower() in {"linear", "routedexperts"} for target in targets)


def _targets(group: Mapping[str, Any]) -> list[str]:
    targets = group.get("targets")
    return [str(each) for each in targets] if isinstance(targets, list) else ["Linear"]


def _number(told: Mapping[str, Any], *keys: str) -> int | None:
    found = (told.get(key) for key in keys)
    return next((each for each in found if isinstance(each, int) and not isinstance(each, bool)), None)


def _pair(told: object) -> tuple[int, int] | None:
    is_pair = isinstance(told, list) and len(told) == 2 and all(isinstance(each, int) and each > 0 for each in told)
    return (told[0], told[1]) if is_pair and isinstance(told, list) else None
