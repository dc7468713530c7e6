"""Decision: the bytes of a model's weights on one device: from its tensors, or counted from its configuration."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from launcher.model_folder import Tensor
from launcher.sizing.architecture import Architecture
from launcher.sizing.kv_cache import stage_sizes
from launcher.sizing.matrices import Matrix, Split
from launcher.sizing.scheme import Scheme

_PADDING = 64
"""vLLM rounds the vocabulary up to a multiple of this."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """How an engine spreads a model over devices."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: bool = False
    """Whole experts on the devices of all tensor- and data-parallel ranks."""


def counted(
    found: Iterable[Matrix], scheme: Scheme | None, float_size: int, model: Architecture, sharding: Sharding
) -> int:
    """Bytes on the device that has most; those that ``scheme`` does not quantize have ``float_size`` bytes each."""

    def size(matrix: Matrix) -> int:
        is_quantized = scheme is not None and matrix.is_linear and scheme.applies(matrix.name)
        one = scheme.size(matrix.rows, matrix.columns) if is_quantized and scheme else matrix.rows * matrix.columns
        each = 1 if is_quantized else 4 if matrix.in_32_bits else float_size
        return one * matrix.copies * each

    return _largest(((each.layer, each.split, size(each)) for each in found), model, sharding)


def measured(tensors: Iterable[Tensor], float_size: int, model: Architecture, sharding: Sharding) -> int:
    """Bytes of a checkpoint's tensors on the device that has most, as an engine loads them: without what it leaves out.

    Floating-point weights are loaded as numbers of ``float_size`` bytes, whatever they are in the file.
    """
    return _largest(_loaded(tensors, float_size, model), model, sharding)


def _loaded(tensors: Iterable[Tensor], float_size: int, model: Architecture) -> Iterator[tuple[int | None, Split, int]]:
    kinds: dict[str, _Kind] = {}  # one of a layer and expert stands for those of all others
    for tensor in tensors:
        if (kind := kinds.get(alike := _NUMBERS.sub("0", tensor.name))) is None:
            kind = kinds[alike] = _kind_of(tensor, model)
        layer = int(found[1]) if kind.in_layer and (found := _LAYER.search(tensor.name)) else None
        if kind.is_left_out or (layer is not None and layer >= len(model.layers)):
            continue
        size = tensor.elements * float_size if tensor.dtype in _FLOATS and not kind.is_scale else tensor.size
        yield layer, kind.split, size


class _Kind(NamedTuple):
    split: Split
    in_layer: bool
    """Of the language model."""
    is_left_out: bool
    is_scale: bool


def _kind_of(tensor: Tensor, model: Architecture) -> _Kind:
    name = tensor.name
    is_left_out = name.endswith(_LEFT_OUT) or (model.tied and _HEAD.search(name) is not None)
    is_scale = "scale" in name or name.endswith("correction_bias")
    return _Kind(_split_of(tensor), _TOWER.search(name) is None, is_left_out, is_scale)


_NUMBERS = re.compile(r"\d+")
_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
_LEFT_OUT = ("rotary_emb.inv_freq", ".g_idx", "attn.masked_bias", ".weight_shape")
_LAYER = re.compile(r"(?:layers|h|blocks)\.(\d+)\.")
_TOWER = re.compile(r"vision|visual|audio|image|multi_modal_projector|mm_projector")
_HEAD = re.compile(r"(?:^|\.)lm_head\.|^output\.weight")
_NAMES = (
    (re.compile(r"embed_tokens|lm_head|wte|tok_embeddings|^output\.weight"), Split.VOCABULARY),
    (re.compile(r"\.experts\."), Split.EXPERTS),
    (re.compile(r"[kv]_proj\.|\.w[kv]\."), Split.BY_KV_HEADS),
    (re.compile(r"q_a_proj|kv_a_proj|norm|\.gate\.|shared_expert_gate|router|eh_proj"), Split.NOT),
)
_NAMES_OF_LATENT = re.compile(r"q_b_proj|kv_b_proj")


def _split_of(tensor: Tensor) -> Split:
    if _NAMES_OF_LATENT.search(tensor.name):
        return Split.EVENLY
    found = next((split for pattern, split in _NAMES if pattern.search(tensor.name)), None)
    if found is not None:
        return found
    after = re.search(r"(?:o_proj|down_proj)\.bias", tensor.name)
    return Split.NOT if after or tensor.elements <= 1 else Split.EVENLY


def _largest(found: Iterable[tuple[int | None, Split, int]], model: Architecture, sharding: Sharding) -> int:
    """Bytes on the first device of the pipeline stage that has most."""
    sizes = stage_sizes(len(model.layers), sharding.pipeline)
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    stages = [0.0] * sharding.pipeline
    for layer, split, size in found:
        share = size * _share(split, model, sharding)
        if layer is None:  # embedding first, output last; where they are one, both have it
            stages[0] += share
            if sharding.pipeline > 1:
                stages[-1] += share
        else:
            stages[next((number for number, end in enumerate(ends) if layer < end), -1)] += share
    return round(max(stages))


def _share(split: Split, model: Architecture, sharding: Sharding) -> float:
    match split:
        case Split.NOT:
            return 1.0
        case Split.EVENLY:
            return 1 / sharding.tensor
        case Split.BY_KV_HEADS:
            return 1 / min(sharding.tensor, model.kv_heads)
        case Split.VOCABULARY:
            rows = max(1, model.vocabulary)
            return -(-rows // _PADDING) * _PADDING / rows / sharding.tensor
        case Split.EXPERTS:
            return 1 / (sharding.tensor * (sharding.data if sharding.experts else 1))
