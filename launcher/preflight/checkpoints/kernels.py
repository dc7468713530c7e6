"""Is there a kernel for these weights on this device?"""

from collections.abc import Iterator
from math import lcm

from launcher.preflight.checkpoints.loaded import models
from launcher.preflight.checkpoints.sharding import Shard, Use, fused, names_of, other_degrees, shards, uses
from launcher.preflight.checkpoints.weight_scheme import groups_of, method_of, strategy_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import Device

_CPU_STEP = 32
_MARLIN_GROUPS = (-1, 32, 64, 128)


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


def _is_odd_on_cpu(each: Shard, use: Use) -> bool:
    layer = each.layer
    is_int4 = layer.is_quantized and layer.scheme is not None and layer.scheme.is_weight_only and layer.scheme.bits == 4
    return is_int4 and not layer.is_expert and bool(each.inputs % _CPU_STEP or each.outputs % _CPU_STEP)


def _is_tile(outputs: int, inputs: int) -> bool:
    return (outputs % 64 == 0 and inputs % 128 == 0) or (outputs % 128 == 0 and inputs % 64 == 0)


_LINEAR = "vLLM 0.32: model_executor/kernels/linear"
RULES = (
    Rule("quantization/cpu-shapes", Layer.STATIC, f"{_LINEAR}: CPUWNA16LinearKernel", _cpu_shapes, needs_model=True),
    Rule("quantization/group-size", Layer.STATIC, f"{_LINEAR}/mixed_precision", _group_sizes, needs_model=True),
    Rule("quantization/padded", Layer.STATIC, "vLLM 0.32: marlin_padded_nk", _padded, needs_model=True),
)
