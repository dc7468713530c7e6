"""Decision: the linear layers of a model, from its tensors, or counted from its configuration."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from launcher.model_folder import ModelFolder, Tensor
from launcher.preflight.checkpoints.weight_scheme import WeightScheme, kept_of, method_of, schemes_of
from launcher.sizing.families import UnknownArchitectureError, architecture_of
from launcher.sizing.matrices import matrices

_NOT_LINEAR = re.compile(r"embed|wte|wpe|patch_conv|relative_attention_bias|rotary|(?:^|\.)norm|layernorm|position")
_TOWER = re.compile(r"vision|visual|audio|image_|multi_modal_projector|mm_projector")
_ROW = re.compile(r"\.(?:o_proj|down_proj|out_proj|w2|wo|dense_4h_to_h|fc2|c_proj|linear_fc2)$|attention\.dense$")
"""Layers whose inputs are split by tensor parallelism; of others the outputs are."""
_WHOLE = re.compile(r"\.(?:q_a_proj|kv_a_proj_with_mqa|gate|router|shared_expert_gate|eh_proj|fc|wkv_a|wq_a)$")
"""Layers of which every device has all."""
FUSED: Mapping[str, tuple[str, ...]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
"""Layers that the engine makes one of: its name -> theirs."""
FLOATS = frozenset({"BF16", "F16", "F32", "F64"})


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear layer."""

    name: str
    """Of the module, as in the checkpoint."""
    inputs: int
    outputs: int
    is_quantized: bool
    """By what is in the files."""
    scheme: WeightScheme | None
    """By what ``config.json`` says."""
    kind: str = ""
    """Type of its tensor."""

    @property
    def last(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    @property
    def is_expert(self) -> bool:
        """Of a mixture, one of those that tokens are sent to."""
        return ".experts." in self.name

    @property
    def is_tower(self) -> bool:
        """A part that sees or hears."""
        return _TOWER.search(self.name) is not None

    @property
    def is_row_parallel(self) -> bool:
        """Whether its inputs are split over devices; else its outputs are."""
        return _ROW.search(self.name) is not None

    @property
    def is_whole(self) -> bool:
        """Whether every device has all of it."""
        return _WHOLE.search(self.name) is not None


def linear_layers(folder: ModelFolder) -> list[Linear]:
    """All of them; those of the output and the embeddings are none."""
    if folder.missing or not folder.tensors:
        return [*_counted(folder)]
    scheme_of, method = schemes_of(folder), method_of(folder)
    found = (
        _layer(module, parts, scheme_of(module), method)
        for module, parts in modules_of(folder).items()
        if not _NOT_LINEAR.search(module) and not is_head(module)
    )
    return [layer for layer in found if layer is not None]


def modules_of(folder: ModelFolder) -> Mapping[str, Mapping[str, Tensor]]:
    """The tensors of each module, by the last parts of their names."""
    found: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for tensor in folder.tensors:
        module, _, last = tensor.name.rpartition(".")
        found[module][last] = tensor
    return found


def is_head(module: str) -> bool:
    """Whether it gives the chances of the next token."""
    return module == "output" or module.endswith("lm_head")


def _layer(name: str, parts: Mapping[str, Tensor], scheme: WeightScheme | None, method: str | None) -> Linear | None:
    bits = scheme.bits if scheme else 4
    if (packed := parts.get("qweight")) is not None and len(packed.shape) == 2:
        rows, columns = packed.shape
        if method == "awq":
            return Linear(name, rows, columns * 32 // bits, True, scheme, packed.dtype)
        return Linear(name, rows * 32 // bits, columns, True, scheme, packed.dtype)
    if (packed := parts.get("weight_packed")) is not None and len(packed.shape) >= 2:
        in_one = 32 // bits if packed.dtype in {"I32", "U32"} else 8 // bits
        return Linear(name, packed.shape[-1] * in_one, packed.shape[-2], True, scheme, packed.dtype)
    weight = parts.get("weight")
    if weight is None or len(weight.shape) != 2:
        return None
    if weight.dtype == "U8" and {"weight_scale", "weight_scale_2"} & parts.keys():
        return Linear(name, weight.shape[1] * 2, weight.shape[0], True, scheme, weight.dtype)
    return Linear(name, weight.shape[1], weight.shape[0], weight.dtype not in FLOATS, scheme, weight.dtype)


def _counted(folder: ModelFolder) -> Iterator[Linear]:
    """From the configuration, where there are no tensors to read."""
    config, scheme_of = folder.config, schemes_of(folder)
    try:
        found = [each for each in matrices(architecture_of(config)) if each.is_linear and each.columns > 1]
    except (UnknownArchitectureError, ArithmeticError, TypeError, ValueError):
        found = []
    for each in found:
        scheme = scheme_of(each.name)
        yield Linear(each.name, each.columns, each.rows, scheme is not None, scheme)
    vision = config.get("vision_config")
    if isinstance(vision, Mapping) and not any(
        _TOWER.search(name) or "vis" in name for name in kept_of(folder.quantization)
    ):
        yield from _of_tower(vision, scheme_of)


def _of_tower(vision: Mapping[str, object], scheme_of: Callable[[str], WeightScheme | None]) -> Iterator[Linear]:
    hidden, inner = vision.get("hidden_size"), vision.get("intermediate_size")
    if isinstance(hidden, int) and isinstance(inner, int):
        for name, inputs, outputs in (("fc1", hidden, inner), ("fc2", inner, hidden)):
            module = f"vision_tower.layers.0.mlp.{name}"
            scheme = scheme_of(module)
            yield Linear(module, inputs, outputs, scheme is not None, scheme)
