"""Do groups of weights that share a scale come out even, in each layer and in what one device has of it?"""

from collections.abc import Iterator

from launcher.preflight.checkpoints.linear_layers import Linear
from launcher.preflight.checkpoints.sharding import Shard, Use, is_uneven, names_of, other_degrees, shards, uses
from launcher.preflight.finding import Case, Fault, Layer, Rule

_GROUPS = (128, 64, 32)
_RESCALED = frozenset({"gptq", "awq"})
"""Methods whose experts are loaded with smaller groups where theirs do not come out even."""


def _divides(case: Case) -> Iterator[Fault]:
    """Groups that do not come out even in the whole layer."""
    for use in _once(case):
        wrong = [each for each in shards(use) if _is_odd(each.layer)]
        if wrong:
            group = _group(wrong[0].layer)
            yield Fault(
                use.model_key,
                f"groups of {group} weights do not come out even in {names_of(wrong)} of {use.name}: "
                f"{wrong[0].layer.inputs} inputs",
                f"quantize it again {_other_group([each.layer.inputs for each in wrong])}, or with these layers in "
                "`ignore`",
                "no kernel reads such weights, and the scales do not fit them",
                {"group_size": str(group), "inputs": str(wrong[0].layer.inputs)},
            )


def _divides_shard(case: Case) -> Iterator[Fault]:
    """Groups that are cut by tensor parallelism."""
    for use in uses(case):
        wrong = [each for each in shards(use) if _is_cut(each, use)]
        if not wrong:
            continue
        first = wrong[0]
        degrees = other_degrees(use, _is_cut)
        instead = f"set {use.key} to {degrees}, or " if degrees else ""
        yield Fault(
            use.key,
            f"with tensor_parallel {use.tensor_parallel} each device has {first.inputs} inputs of "
            f"{names_of(wrong)} of {use.what}, which groups of {_group(first.layer)} weights do not divide",
            f"{instead}quantize it {_other_group([each.inputs for each in wrong])}",
            "the engine refuses it when it loads: a group's scale belongs to one device",
            {
                "group_size": str(_group(first.layer)),
                "inputs per device": str(first.inputs),
                use.key: str(use.tensor_parallel),
            },
        )


def _blocks(case: Case) -> Iterator[Fault]:
    """Squares of FP8 weights that share a scale, cut by tensor parallelism."""
    for use in uses(case):
        wrong = [each for each in shards(use) if _is_block_cut(each, use)]
        if not wrong:
            continue
        first, degrees = wrong[0], other_degrees(use, _is_block_cut)
        block = first.layer.scheme.block if first.layer.scheme else None
        side = f"{first.inputs} inputs" if first.splits_inputs else f"{first.outputs} outputs"
        ways = [f"set {use.key} to {degrees}"] if degrees else []
        if any(each.layer.is_expert for each in wrong):
            ways.append("set expert_parallel")
        yield Fault(
            use.key,
            f"with tensor_parallel {use.tensor_parallel} each device has {side} of {names_of(wrong)} of {use.what}, "
            f"which blocks of {block[0] if block else ''} x {block[1] if block else ''} weights do not divide",
            " or ".join(ways) or "serve a checkpoint with one scale for each channel",
            "the engine refuses it when it loads",
        )


def _sizes(case: Case) -> Iterator[Fault]:
    """Layers that cannot be split into so many equal parts, whatever their numbers are."""
    for use in uses(case):
        wrong = [each for each in shards(use) if is_uneven(each.layer, use)]
        if not wrong:
            continue
        layer, degrees = wrong[0].layer, other_degrees(use, lambda _, __: False)
        side = f"{layer.inputs} inputs" if layer.is_row_parallel else f"{layer.outputs} outputs"
        yield Fault(
            use.key,
            f"tensor_parallel {use.tensor_parallel} does not divide the {side} of {names_of(wrong)} of {use.what}",
            f"set {use.key} to {degrees}" if degrees else "use pipeline_parallel",
            "the engine ends when it builds the model",
        )


def _once(case: Case) -> Iterator[Use]:
    """Each model once, as one device would have it."""
    yield from {use.folder.path: use for use in uses(case)}.values()


def _group(layer: Linear) -> int:
    return (layer.scheme and layer.scheme.group) or 0


def _is_odd(layer: Linear) -> bool:
    group = _group(layer)
    return layer.is_quantized and group > 0 and layer.inputs % group != 0


def _is_cut(each: Shard, use: Use) -> bool:
    layer, group = each.layer, _group(each.layer)
    if not layer.is_quantized or not group or layer.inputs % group:
        return False  # the whole layer's own fault
    if layer.is_expert and layer.scheme and layer.scheme.method in _RESCALED:
        return each.inputs % 32 != 0
    return each.splits_inputs and each.inputs % group != 0


def _is_block_cut(each: Shard, use: Use) -> bool:
    layer = each.layer
    block = layer.scheme.block if layer.scheme else None
    if block is None or not layer.is_quantized or use.tensor_parallel == 1 or layer.is_whole or layer.is_tower:
        return False
    if layer.is_expert and use.whole_experts:
        return False
    return each.inputs % block[1] != 0 if each.splits_inputs else each.outputs % block[0] != 0


def _other_group(inputs: list[int]) -> str:
    fits = next((group for group in _GROUPS if all(each % group == 0 for each in inputs)), None)
    return f"in groups of {fits}" if fits else "with one scale for each channel"


_VLLM = "vLLM 0.32: verify_group_size_divides_partition, Marlin's and other kernels' can_implement"
RULES = (
    Rule("quantization/group-divides-layer", Layer.STATIC, _VLLM, _divides, needs_model=True),
    Rule("quantization/group-divides-shard", Layer.STATIC, _VLLM, _divides_shard, needs_model=True),
    Rule(
        "quantization/blocks-divide-shard",
        Layer.STATIC,
        "vLLM 0.32: validate_fp8_block_shape",
        _blocks,
        needs_model=True,
    ),
    Rule("parallel/layer-sizes", Layer.STATIC, "vLLM: distributed.utils.divide", _sizes, needs_model=True),
)
