"""Can the engine read a checkpoint of this method, scheme and library?"""

from collections.abc import Iterator, Mapping
from typing import Any

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.loaded import models
from launcher.preflight.checkpoints.weight_scheme import groups_of, method_of, strategy_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_ENGINE_LIBRARY = (0, 17, 0)
"""The compressed-tensors that vLLM 0.32 brings."""
_PACKED = "pack-quantized"
_WITH_ACTIVATIONS = frozenset({"naive-quantized", "int-quantized", "float-quantized", "nvfp4-pack-quantized"})


def _settings(case: Case) -> Iterator[Fault]:
    """Variants of a method that the engine does not read any more, or never did."""
    for model in models(case):
        for what, fix in _variants(model.folder):
            yield Fault(model.key, f"{model.name} is quantized {what}", fix, "the engine refuses it when it starts")


def _known_scheme(case: Case) -> Iterator[Fault]:
    """Combinations of numbers that the engine has no scheme for."""
    for model in models(case):
        told = model.folder.quantization
        if method_of(model.folder) != "compressed-tensors":
            continue
        sparsity = told.get("sparsity_config")
        if isinstance(sparsity, Mapping) and sparsity.get("targets"):
            yield Fault(
                model.key, f"{model.name} is sparse (sparsity_config)", "serve a dense checkpoint", "vLLM dropped it"
            )
        for group in groups_of(told):
            if not _is_known(group, str(group.get("format") or told.get("format"))):
                weights = group["weights"]
                name = f"{weights.get('type', 'int')}{weights.get('num_bits')} weights by {strategy_of(weights)}"
                yield Fault(
                    model.key,
                    f"vLLM 0.32 has no scheme for {name}, activations {_activations(group)}, "
                    f"format {group.get('format') or told.get('format')} ({model.name})",
                    "upgrade the engine, or quantize it again (W4A16, W8A8, FP8_DYNAMIC...)",
                    '"No compressed-tensors compatible scheme was found"',
                )


def _library(case: Case) -> Iterator[Fault]:
    """Made by a newer library than the engine reads it with."""
    for model in models(case):
        version = model.folder.quantization.get("version")
        if method_of(model.folder) == "compressed-tensors" and isinstance(version, str):
            numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
            if numbers > _ENGINE_LIBRARY:
                yield Fault(
                    model.key,
                    f"{model.name} was made by compressed-tensors {version}, vLLM 0.32 reads it with "
                    f"{'.'.join(map(str, _ENGINE_LIBRARY))}",
                    "try it before you rely on it; if it does not load, upgrade the engine",
                    "W8A8, W4A16 and FP8 load all the same, newer schemes do not",
                    severity=Severity.WARNING,
                )


def _variants(folder: ModelFolder) -> Iterator[tuple[str, str]]:
    told, method = folder.quantization, method_of(folder)
    bits = told.get("bits", told.get("w_bit"))
    if method == "gptq":
        if told.get("desc_act") is True and told.get("group_size") != -1:
            yield "by GPTQ with desc_act: true", "quantize it with desc_act: false"
        if told.get("sym") is False:
            yield "by GPTQ with sym: false", "quantize it with sym: true, or as AWQ"
        if isinstance(bits, int) and bits not in {4, 8}:
            yield f"by GPTQ in {bits} bits", "quantize it in 4 or 8 bits"
    if method == "awq" and isinstance(bits, int) and bits != 4:
        yield f"by AWQ in {bits} bits", "quantize it in 4 bits"
    for group in groups_of(told) if method == "compressed-tensors" else ():
        if (order := group["weights"].get("actorder")) in {"group", "dynamic"}:
            yield f"with actorder: {order}", "quantize it with actorder: static (or weight)"


def _is_known(group: Mapping[str, Any], form: str) -> bool:
    """As vLLM chooses, or more: integers packed, or numbers of weights with numbers of activations."""
    weights, inputs = group["weights"], group.get("input_activations")
    bits, strategy = weights.get("num_bits"), strategy_of(weights)
    is_static = weights.get("dynamic") in {None, False}
    if weights.get("type", "int") == "float":
        is_plain = strategy in {"tensor", "channel", "block"} and weights.get("symmetric") is not False
        return strategy in {"group", "tensor_group"} or (is_plain and form in _WITH_ACTIVATIONS) or form == _PACKED
    if form == _PACKED:
        return strategy in {"channel", "group"} and is_static and isinstance(bits, int) and 2 <= bits <= 8
    if form not in _WITH_ACTIVATIONS or not isinstance(inputs, Mapping) or weights.get("symmetric") is False:
        return False
    is_dynamic = inputs.get("dynamic") is True
    if bits == 4:
        return strategy in {"group", "channel"} and is_dynamic and inputs.get("num_bits") == 8
    is_input = inputs.get("strategy") == ("token" if is_dynamic else "tensor")
    return bits == 8 == inputs.get("num_bits") and strategy in {"tensor", "channel"} and is_static and is_input


def _activations(group: Mapping[str, Any]) -> str:
    inputs = group.get("input_activations")
    return f"{inputs.get('type', 'int')}{inputs.get('num_bits')}" if isinstance(inputs, Mapping) else "of 16 bits"


_LAYERS = "vLLM 0.32: model_executor/layers/quantization"
RULES = (
    Rule("quantization/variant", Layer.STATIC, _LAYERS, _settings, needs_model=True),
    Rule("quantization/known-scheme", Layer.STATIC, f"{_LAYERS}/compressed_tensors", _known_scheme, needs_model=True),
    Rule("quantization/library", Layer.STATIC, "the packages that vLLM 0.32 pins", _library, needs_model=True),
)
