"""How much does each unit hurt when it alone is quantized?

First all units by one backward pass a record: the squared change that rounding a unit makes to the log-likelihood of
labels sampled from the model itself, which is twice the KL divergence to second order (the Fisher information). Then
the worst fifth by the KL divergence itself.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .loading import load
from .quantize import calibration_records
from .rounding import rounded, rounded_inputs
from .telling import Tell

_TOP = 0.2
"""Share of the units whose KL is measured."""


def sensitivity(job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """``job``: {"model", "records", "seed", "most_records", "most_tokens", "units": [{"name", "scheme", "group",
    "layers"}]}; result: {"units": [{"name", "fisher", "kl" or null}]}, in nats a token."""
    import torch

    torch.manual_seed(job["seed"])
    model = load(job["model"], dtype="float32").eval().requires_grad_(False)
    units: Sequence[Mapping[str, Any]] = job["units"]
    records = [record[: job["most_tokens"]] for record in calibration_records(job)[: job["most_records"]]]
    fisher = _fisher(model, units, records, tell)
    worst = sorted(units, key=lambda unit: -fisher[unit["name"]])[: math.ceil(len(units) * _TOP)]
    kl = _kl(model, worst, records, tell)
    return {
        "units": [{"name": unit["name"], "fisher": fisher[unit["name"]], "kl": kl.get(unit["name"])} for unit in units]
    }


def _fisher(
    model: Any, units: Sequence[Mapping[str, Any]], records: Sequence[Sequence[int]], tell: Tell
) -> dict[str, float]:
    import torch

    of_layer = {layer: unit for unit in units for layer in unit["layers"]}
    modules = {name: module for name, module in model.named_modules() if name in of_layer}
    changed = {
        name: rounded(module.weight, of_layer[name]["scheme"], of_layer[name]["group"])
        for name, module in modules.items()
    }
    inputs: dict[str, Any] = {}
    slopes: dict[str, Any] = {}
    hooks = [each for name, module in modules.items() for each in _hooks(name, module, inputs, slopes)]
    total, tokens = dict.fromkeys((unit["name"] for unit in units), 0.0), 0
    for number, record in enumerate(records):
        tell.progress("estimating each layer's sensitivity", number, len(records))
        embedded = model.get_input_embeddings()(torch.tensor([record])).requires_grad_(True)
        logits = model(inputs_embeds=embedded).logits[0].float()
        labels = torch.multinomial(logits.detach().softmax(-1), 1).flatten()
        torch.nn.functional.cross_entropy(logits, labels, reduction="sum").backward()
        along: dict[str, Any] = {}
        for name, module in modules.items():
            if name not in inputs or name not in slopes:
                continue  # an expert that no token was sent to
            given, unit = inputs[name], of_layer[name]
            difference = rounded_inputs(given, unit["scheme"]) @ changed[name].T - given @ module.weight.T
            slope = (slopes[name] * difference).sum(-1).flatten()
            before = along.get(unit["name"])
            along[unit["name"]] = slope if before is None or before.shape != slope.shape else before + slope
        for name, slope in along.items():
            total[name] += float((slope**2).sum()) / 2
        tokens += len(record)
        inputs.clear()
        slopes.clear()
    for hook in hooks:
        hook.remove()
    return {name: value / max(tokens, 1) for name, value in total.items()}


def _hooks(name: str, module: Any, inputs: dict[str, Any], slopes: dict[str, Any]) -> list[Any]:
    def came(_: Any, given: Any) -> None:
        inputs[name] = given[0].detach()

    def went(_: Any, __: Any, slope: Any) -> None:
        slopes[name] = slope[0].detach()

    return [module.register_forward_pre_hook(came), module.register_full_backward_hook(went)]


def _kl(
    model: Any, units: Sequence[Mapping[str, Any]], records: Sequence[Sequence[int]], tell: Tell
) -> dict[str, float]:
    import torch

    modules = dict(model.named_modules())
    with torch.no_grad():
        before = [model(torch.tensor([record])).logits[0].log_softmax(-1) for record in records]
        found = {}
        for number, unit in enumerate(units):
            tell.progress("measuring the most sensitive layers", number, len(units))
            own = [modules[layer] for layer in unit["layers"]]
            kept = [module.weight.data for module in own]
            hooks = [module.register_forward_pre_hook(_rounds(unit["scheme"])) for module in own]
            for module, weight in zip(own, kept, strict=True):
                module.weight.data = rounded(weight, unit["scheme"], unit["group"])
            total = tokens = 0.0
            for record, was in zip(records, before, strict=True):
                now = model(torch.tensor([record])).logits[0].log_softmax(-1)
                total += float((was.exp() * (was - now)).sum())
                tokens += len(record)
            found[unit["name"]] = total / tokens
            for hook in hooks:
                hook.remove()
            for module, weight in zip(own, kept, strict=True):
                module.weight.data = weight
    return found


def _rounds(scheme: str) -> Any:
    def before(_: Any, given: Any) -> Any:
        return (rounded_inputs(given[0], scheme), *given[1:])

    return before
