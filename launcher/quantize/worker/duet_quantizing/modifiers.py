"""From the job's recipe to llm-compressor's modifiers."""

from collections.abc import Mapping, Sequence
from typing import Any


def modifiers(recipe: Mapping[str, Any]) -> list[Any]:
    """``recipe``: {"algorithm", "strength", "groups": [{"scheme", "group", "symmetric", "layers" or null}], "ignore"}.

    ``layers``: names; ``null`` means all linear layers that are not in ``ignore``.
    """
    from llmcompressor.modifiers.quantization import GPTQModifier, QuantizationModifier
    from llmcompressor.modifiers.transform.awq import AWQModifier
    from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier

    groups = {f"group_{number}": _scheme(group) for number, group in enumerate(recipe["groups"])}
    told = {"config_groups": groups, "ignore": [*recipe["ignore"]]}
    algorithm = recipe["algorithm"]
    if algorithm == "rtn":
        return [QuantizationModifier(**told)]
    if algorithm == "gptq":
        return [GPTQModifier(**told)]
    if algorithm == "awq":
        return [AWQModifier(), QuantizationModifier(**told)]
    if algorithm == "smoothquant+gptq":
        return [SmoothQuantModifier(smoothing_strength=recipe["strength"]), GPTQModifier(**told)]
    raise ValueError(f"no algorithm {algorithm!r}")


def _scheme(group: Mapping[str, Any]) -> Any:
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    layers: Sequence[str] | None = group["layers"]
    targets = ["Linear"] if layers is None else [*layers]
    size, symmetric = group["group"], group["symmetric"]
    if group["scheme"] == "int4":
        shared = {"strategy": "group", "group_size": size} if size else {"strategy": "channel"}
        return QuantizationScheme(
            targets=targets, weights=QuantizationArgs(num_bits=4, type="int", symmetric=symmetric, **shared)
        )
    kind = "int" if group["scheme"] == "int8" else "float"
    if group.get("activations", True):
        inputs = QuantizationArgs(num_bits=8, type=kind, symmetric=True, strategy="token", dynamic=True)
    else:
        inputs = None
    return QuantizationScheme(
        targets=targets,
        weights=QuantizationArgs(num_bits=8, type=kind, symmetric=True, strategy="channel"),
        input_activations=inputs,
    )
