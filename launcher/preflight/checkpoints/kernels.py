"""Is there a kernel for these weights on this device?"""

from collections.abc import Iterator, Mapping
from math import lcm
from typing import Any

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.loaded import models
from launcher.preflight.checkpoints.sharding import Shard, Use, fused, names_of, other_degrees, shards, uses
from launcher.preflight.checkpoints.weight_scheme import groups_of, method_of, strategy_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import Device

_CPU_STEP = 32
_MARLIN_GROUPS = (-1, 32, 64, 128)
_ENGINE_LIBRARY = (0, 17, 0)
"""The compressed-tensors that vLLM 0.32 brings."""
_WITH_ACTIVATIONS = frozenset({"naive-quantized", "int-quantized", "float-quantized", "nvfp4-pack-quantized"})


def _cpu_shapes(case: Case) -> Iterator[Fault]:
    """Sizes that the CPU's kernel of 4-bit weights does not take."""
    for use in uses(case):
        wrong = [each for each in fused(shards(use)) if _is_odd_on_cpu(each, use)]
        if use.device is Device.CPU and wrong:
            first, degrees = wrong[0], other_degrees(use, _is_odd_on_cpu)
            yield Fault(
                use.key,
                f"{first.inputs} inputs and {first.outputs} outputs on each device in {names_of(wrong)} of {use.what} "
                f"are not both multiples of {_CPU_STEP}",
                (f"set {use.key} to {degrees}" if degrees else "quantize it again with these layers in `ignore`")
                + ", or serve the INT8 (W8A8) or 16-bit checkpoint",
                "the CPU has no other kernel for 4-bit weights",
            )


def _group_sizes(case: Case) -> Iterator[Fault]:
    """Group sizes that no kernel of the engine takes."""
    for model in models(case):
        told, method = model.folder.quantization, method_of(model.folder)
        size = told.get("group_size")
        if method == "gptq" and isinstance(size, int) and size not in _MARLIN_GROUPS:
            yield _no_kernel(model.key, model.name, f"GPTQ with groups of {size}")
        for group in groups_of(told) if method == "compressed-tensors" else ():
            weights = group["weights"]
            size = weights.get("group_size")
            is_plain = weights.get("type", "int") == "int" and not group.get("input_activations")
            on_gpu = case.profile.device is Device.CUDA
            if (
                is_plain
                and strategy_of(weights) == "group"
                and isinstance(size, int)
                and ((on_gpu and size not in (*_MARLIN_GROUPS, 256)) or size % 2)
            ):
                yield _no_kernel(model.key, model.name, f"integers in groups of {size}")


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


def _padded(case: Case) -> Iterator[Fault]:
    """Sizes that the GPU's kernel of 4- and 8-bit weights has to fill up with zeros."""
    for use in uses(case):
        if use.device is not Device.CUDA:
            continue
        found = [
            each
            for each in fused(shards(use))
            if each.layer.is_quantized
            and each.layer.scheme
            and each.layer.scheme.is_weight_only
            and not _is_tile(each.outputs, each.inputs)
            and not each.layer.is_expert
        ]
        if found:
            group = (found[0].layer.scheme and found[0].layer.scheme.group) or 1
            yield Fault(
                use.key,
                f"Marlin fills {names_of(found)} of {use.what} up with zeros: {found[0].outputs} outputs, "
                f"{found[0].inputs} inputs (it wants multiples of 64 and {lcm(128, group)}, or of 128 and "
                f"{lcm(64, group)})",
                "choose another tensor_parallel, or measure and live with it",
                "each step copies the activations of these layers",
                severity=Severity.WARNING,
            )


def _no_kernel(key: str, name: str, what: str) -> Fault:
    return Fault(
        key,
        f"vLLM 0.32 has no kernel for {what} ({name})",
        "quantize it in groups of 128, 64 or 32, or with one scale for each channel",
        "the engine ends when it loads",
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
    """As vLLM chooses: integers packed without activations, or 8-bit numbers with those of activations."""
    weights, inputs = group["weights"], group.get("input_activations")
    bits, strategy = weights.get("num_bits"), strategy_of(weights)
    is_static = weights.get("dynamic") in {None, False}
    if weights.get("type", "int") == "float":
        is_plain = strategy in {"tensor", "channel", "block"} and weights.get("symmetric") is not False
        return strategy in {"group", "tensor_group"} or (bits == 8 and is_plain and form in _WITH_ACTIVATIONS)
    if form == "pack-quantized":
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


def _is_odd_on_cpu(each: Shard, use: Use) -> bool:
    layer = each.layer
    is_int4 = layer.is_quantized and layer.scheme is not None and layer.scheme.is_weight_only and layer.scheme.bits == 4
    return is_int4 and not layer.is_expert and bool(each.inputs % _CPU_STEP or each.outputs % _CPU_STEP)


def _is_tile(outputs: int, inputs: int) -> bool:
    return (outputs % 64 == 0 and inputs % 128 == 0) or (outputs % 128 == 0 and inputs % 64 == 0)


_LINEAR = "vLLM 0.32: model_executor/kernels/linear"
_LAYERS = "vLLM 0.32: model_executor/layers/quantization"
RULES = (
    Rule("quantization/cpu-shapes", Layer.STATIC, f"{_LINEAR}: CPUWNA16LinearKernel", _cpu_shapes, needs_model=True),
    Rule("quantization/group-size", Layer.STATIC, f"{_LINEAR}/mixed_precision", _group_sizes, needs_model=True),
    Rule("quantization/variant", Layer.STATIC, _LAYERS, _settings, needs_model=True),
    Rule("quantization/known-scheme", Layer.STATIC, f"{_LAYERS}/compressed_tensors", _known_scheme, needs_model=True),
    Rule("quantization/library", Layer.STATIC, "the packages that vLLM 0.32 pins", _library, needs_model=True),
    Rule("quantization/padded", Layer.STATIC, "vLLM 0.32: marlin_padded_nk", _padded, needs_model=True),
)
