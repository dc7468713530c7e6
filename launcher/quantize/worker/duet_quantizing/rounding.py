"""Rounds weights and activations as a scheme does, and back: what one layer would lose."""

from typing import Any

_FP8_MOST = 448.0
"""Largest number of float8_e4m3."""


def rounded(weight: Any, scheme: str, group: int | None) -> Any:
    """A weight of (outputs, inputs), to the nearest that the scheme can say."""
    if scheme == "fp8":
        return _fp8(weight)
    if scheme == "int8":
        return _integers(weight, 8)
    if group is None:
        return _integers(weight, 4)
    outputs, inputs = weight.shape
    return _integers(weight.reshape(outputs, inputs // group, group), 4).reshape(outputs, inputs)


def rounded_inputs(inputs: Any, scheme: str) -> Any:
    """Activations of (..., inputs): eight bits a token, or as they are for weights of four."""
    if scheme == "int4":
        return inputs
    return _fp8(inputs) if scheme == "fp8" else _integers(inputs, 8)


def _integers(numbers: Any, bits: int) -> Any:
    most = 2 ** (bits - 1)
    scale = (numbers.abs().amax(dim=-1, keepdim=True) / (most - 0.5)).clamp_min(1e-12)
    return (numbers / scale).round().clamp(-most, most - 1) * scale


def _fp8(numbers: Any) -> Any:
    import torch

    scale = (numbers.abs().amax(dim=-1, keepdim=True) / _FP8_MOST).clamp_min(1e-12)
    return (numbers / scale).to(torch.float8_e4m3fn).to(numbers.dtype) * scale
