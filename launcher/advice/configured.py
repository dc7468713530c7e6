"""Decision: what a plan says of a situation."""

from collections.abc import Mapping
from typing import Any

from launcher.advice.facts import FACTS, Value
from launcher.command_line import options_of, speculation_of
from launcher.gpus import capability
from launcher.model_folder import quantization_of
from launcher.plan import Plan
from launcher.preflight.quantization import scheme
from launcher.profile import Device
from proxy.topology import Role


def configured(plan: Plan, model: Mapping[str, Any]) -> Mapping[str, Value | None]:
    """Facts by their names. ``model`` is its config.json, empty when that is not on this machine."""
    generating = next(each for each in plan.engines if each.role is not Role.PREFILL)
    options = options_of(generating.argv)
    memory = generating.device_memory
    return {
        "device": plan.device.value,
        "devices": _devices(plan),
        "device_memory": None if memory is None else memory / 1e9,
        "compute_capability": capability(generating.device_type),
        "pd": plan.connector is not None,
        "quantized": _quantized(plan.checkpoint_scheme, options.get("quantization"), model),
        "speculation": _speculation(options),
        **{f"{name}_objective": seconds for name, seconds in plan.objectives.items()},
    }


def _devices(plan: Plan) -> float:
    """All engines on CPUs share those of one machine."""
    return 1.0 if plan.device is Device.CPU else float(len({gpu for each in plan.engines for gpu in each.devices}))


def _quantized(checkpoint: str | None, online: str | None, model: Mapping[str, Any]) -> str | None:
    """``None``: a checkpoint whose precision nobody has told."""
    if online is not None:
        return next((word for word in ("fp8", "int8") if online.startswith(word)), "other")
    if checkpoint is None and model:
        declared = quantization_of(model)
        checkpoint = (scheme(declared) or "other") if declared else "none"
    return None if checkpoint is None else _word("quantized", checkpoint)


def _speculation(options: Mapping[str, str]) -> str:
    config = speculation_of(options)
    return _word("speculation", str(config.get("method", "draft_model"))) if config else "none"


def _word(fact: str, word: str) -> str:
    return word if word in FACTS[fact].words else "other"
