"""Decision: how many bytes a weight has, from what a checkpoint or an option says of quantization."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class UnknownSchemeError(ValueError):
    """Its bytes are not known; the message says what was found, as a clause."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How linear layers are stored."""

    name: str
    """``16 bit``, ``int8 w8a8``, ``int4 w4a16``, ``fp8``..."""
    bits: int
    """Of one weight."""
    group: int | None = None
    """Weights of one row that share a scale; ``None``: a whole row does."""
    scale_bits: int = 32
    zero_bits: int = 0
    """Of one group's zero point."""
    block: tuple[int, int] | None = None
    """Rows and columns of a square that shares a scale, in place of a group."""
    unquantized: tuple[str, ...] = ()
    """Names and ``re:`` patterns of modules that stay as they are."""
    only_experts: bool = False

    def size(self, rows: int, columns: int) -> int:
        """Bytes of a quantized matrix with its scales and zero points."""
        if self.block is not None:
            scales = -(-rows // self.block[0]) * -(-columns // self.block[1])
        else:
            scales = rows * (-(-columns // self.group) if self.group else 1)
        return (rows * columns * self.bits + scales * (self.scale_bits + self.zero_bits)) // 8

    def applies(self, module: str) -> bool:
        """Whether the linear layer of this name is quantized."""
        if self.only_experts and ".experts." not in module:
            return False
        return not any(_matches(pattern, module) for pattern in self.unquantized)


def _matches(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], module) is not None
        except re.error:
            return False
    return pattern in module.split(".") or module == pattern or module.startswith(pattern + ".") or pattern in module


_OPTIONS: Mapping[str, Scheme] = {
    "fp8": Scheme("fp8", 8, scale_bits=0),
    "fp8_per_tensor": Scheme("fp8", 8, scale_bits=0),
    "fp8_per_channel": Scheme("fp8", 8),
    "fp8_per_block": Scheme("fp8", 8, block=(128, 128)),
    "mxfp8": Scheme("mxfp8", 8, group=32, scale_bits=8),
    "mxfp4": Scheme("mxfp4", 4, group=32, scale_bits=8),
}
"""``--quantization``: 16-bit weights that are quantized while they are loaded."""


def online(option: str) -> Scheme | None:
    """What ``--quantization`` makes of 16-bit weights; ``None`` for the name of a checkpoint's own scheme."""
    return _OPTIONS.get(option)


def scheme_of(quantization: Mapping[str, Any]) -> Scheme | None:
    """From a ``quantization_config``; ``None`` when there is none. Raises :class:`UnknownSchemeError`."""
    if not quantization:
        return None
    method = str(quantization.get("quant_method") or "").lower().replace("_", "-")
    kept = tuple(
        str(name)
        for key in ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "llm_int8_skip_modules")
        if isinstance(names := quantization.get(key), list)
        for name in names
    )
    if method == "compressed-tensors":
        return _of_groups(quantization, kept)
    if method in {"awq", "gptq", "auto-round", "gptq-marlin", "awq-marlin"}:
        bits = _bits(quantization, "bits", "w_bit")
        group = _positive(quantization.get("group_size")) or _positive(quantization.get("q_group_size"))
        has_zeros = method.startswith("gptq") or quantization.get("zero_point", True)
        return Scheme(f"int{bits} {method}", bits, group, 16, bits if has_zeros else 0, None, kept)
    if method in {"fp8", "fbgemm-fp8"}:
        if block := _square(quantization.get("weight_block_size")):
            return Scheme("fp8 in blocks", 8, block=block, unquantized=kept)
        return Scheme("fp8", 8, scale_bits=0, unquantized=kept)
    if method == "mxfp4":
        return Scheme("mxfp4", 4, 32, 8, unquantized=kept, only_experts=True)
    algorithm = str(quantization.get("quant_algo") or "").upper()
    if "NVFP4" in algorithm or method == "modelopt-fp4":
        return Scheme("nvfp4", 4, 16, 8, unquantized=kept)
    if "FP8" in algorithm:
        return Scheme("fp8", 8, scale_bits=0, unquantized=kept)
    if method == "bitsandbytes":
        return Scheme("int8", 8, unquantized=kept) if quantization.get("load_in_8bit") else Scheme("nf4", 4, 64, 32)
    raise UnknownSchemeError(f"its bytes per weight are not known for the quantization {method or algorithm or '?'}")


def _of_groups(quantization: Mapping[str, Any], kept: tuple[str, ...]) -> Scheme:
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        bits = _bits(weights, "num_bits")
        is_float = weights.get("type") == "float"
        activations = group.get("input_activations")
        of_activations = _positive(activations.get("num_bits")) if isinstance(activations, Mapping) else None
        name = f"{'fp' if is_float else 'int'}{bits} w{bits}a{of_activations or 16}"
        zeros = 0 if weights.get("symmetric", True) else bits
        if weights.get("strategy") == "block" and (block := _square(weights.get("block_structure"))):
            return Scheme(name, bits, block=block, unquantized=kept)
        if weights.get("strategy") == "tensor":
            return Scheme(name, bits, scale_bits=0, unquantized=kept)
        grouped = None if weights.get("strategy") == "channel" else _positive(weights.get("group_size"))
        scale_bits = 8 if bits == 4 and is_float else 16
        return Scheme(name, bits, grouped, scale_bits, zeros, None, kept)
    raise UnknownSchemeError("its quantization_config has no config_groups that say how weights are stored")


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _square(value: object) -> tuple[int, int] | None:
    sides = [_positive(side) for side in value] if isinstance(value, list) else []
    return (sides[0], sides[1]) if len(sides) == 2 and sides[0] and sides[1] else None


def _bits(told: Mapping[str, Any], *keys: str) -> int:
    bits = next((bits for key in keys if (bits := _positive(told.get(key)))), 0)
    if not 1 <= bits <= 16:
        raise UnknownSchemeError(f"its quantization does not say {keys[0]}")
    return bits
