"""Decision: what of a model is quantized, in the units that the engine makes one layer of each."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from launcher.errors import QuantizeError
from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.linear_layers import FLOATS, FUSED, Linear, linear_layers

_ROUTERS = re.compile(r"(?:^|\.)(?:gate|router|shared_expert_gate)$")
_EXPERTS = re.compile(r"^(.*\.experts)\..*$")
_HEADS = "lm_head"
GROUPS = (128, 64, 32)
"""Weights that may share a scale at four bits, best kernels first."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Layers that must be stored alike, because the engine makes one of them."""

    name: str
    layers: tuple[Linear, ...]

    @property
    def parameters(self) -> int:
        """Numbers in it."""
        return sum(each.inputs * each.outputs for each in self.layers)


@dataclass(frozen=True, slots=True)
class Parts:
    """A model, divided."""

    units: tuple[Unit, ...]
    """What can be quantized, in the order of the model."""
    ignored: tuple[str, ...]
    """Linear layers that stay in 16 bits by default: routers, towers that see or hear, the output."""


def parts_of(folder: ModelFolder) -> Parts:
    """Raises :class:`QuantizeError` for a folder that cannot be quantized, naming why."""
    if folder.faults:
        raise QuantizeError(f"{folder.path}: {folder.faults[0]}")
    if folder.gguf and not folder.tensors:
        raise QuantizeError(f"{folder.path} is a GGUF file ({folder.gguf[0]}): give the 16-bit model as safetensors")
    if folder.tensors and not folder.config:
        raise QuantizeError(f"{folder.path} has no config.json, which says what kind of model it is: fetch it again")
    if folder.quantization:
        method = folder.quantization.get("quant_method", "some method")
        raise QuantizeError(f"{folder.path} is already quantized ({method}): give the 16-bit original")
    if not folder.tensors or folder.missing:
        missing = f": {folder.missing[0]} is missing" if folder.missing else ""
        raise QuantizeError(f"{folder.path} has no whole set of safetensors files{missing}; fetch the model again")
    layers = linear_layers(folder)
    if strange := [each for each in layers if each.is_quantized or each.kind not in FLOATS]:
        raise QuantizeError(
            f"{strange[0].name} of {folder.path} is stored as {strange[0].kind}, though config.json says nothing of a "
            "quantization: give the 16-bit original"
        )
    left = [each for each in layers if _ROUTERS.search(each.name) or each.is_tower]
    found: dict[str, list[Linear]] = defaultdict(list)
    for each in layers:
        if each not in left:
            found[_unit_of(each)].append(each)
    if not found:
        raise QuantizeError(f"{folder.path} has no linear layers that could be quantized")
    heads = [_HEADS]
    return Parts(tuple(Unit(name, tuple(own)) for name, own in found.items()), (*heads, *(each.name for each in left)))


def without(parts: Parts, patterns: Sequence[str]) -> Parts:
    """The same with layers left in 16 bits that the user names: whole names, or expressions behind ``re:``.

    Raises :class:`QuantizeError` for a pattern that no layer has, and for one that divides a unit.
    """
    left = set()
    for pattern in patterns:
        hits = [unit for unit in parts.units for layer in unit.layers if _means(pattern, layer.name)]
        if not hits:
            names = ", ".join(layer.name for layer in parts.units[0].layers)
            raise QuantizeError(f"--ignore {pattern}: no layer is called so; layers are called like {names}")
        left |= {layer.name for unit in hits for layer in unit.layers if _means(pattern, layer.name)}
    for unit in parts.units:
        own = {layer.name for layer in unit.layers}
        if own & left and not own <= left:
            raise QuantizeError(
                f"--ignore leaves {min(own & left)} in 16 bits, but not {min(own - left)}: the engine makes one "
                f"layer of them ({unit.name}) and would not load it; name all of them or none"
            )
    units = tuple(unit for unit in parts.units if not {layer.name for layer in unit.layers} & left)
    if not units:
        raise QuantizeError("--ignore leaves no layer to quantize")
    return Parts(units, (*parts.ignored, *sorted(left)))


def _means(pattern: str, name: str) -> bool:
    if not pattern.startswith("re:"):
        return pattern == name
    try:
        return re.fullmatch(pattern[3:], name) is not None
    except re.error as exc:
        raise QuantizeError(f"--ignore {pattern}: {exc}") from exc


def group_size(units: Sequence[Unit], tensor_parallel: int) -> int | None:
    """The first that divides the inputs of every layer on each device; ``None``: one scale for a whole row."""
    inputs = {_inputs_on_a_device(layer, tensor_parallel) for unit in units for layer in unit.layers}
    return next((size for size in GROUPS if all(each % size == 0 for each in inputs)), None)


def odd_layers(units: Sequence[Unit], tensor_parallel: int, size: int) -> list[str]:
    """Those whose inputs on one device a group does not divide."""
    return [layer.name for unit in units for layer in unit.layers if _inputs_on_a_device(layer, tensor_parallel) % size]


def _inputs_on_a_device(layer: Linear, tensor_parallel: int) -> int:
    return layer.inputs // tensor_parallel if layer.is_row_parallel else layer.inputs


def _unit_of(layer: Linear) -> str:
    if experts := _EXPERTS.match(layer.name):
        return experts[1]
    start = layer.name.removesuffix(layer.last)
    whole = next((whole for whole, names in FUSED.items() if layer.last in names), layer.last)
    return start + whole
