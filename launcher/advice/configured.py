"""Decision: what a plan says of a situation."""

from collections.abc import Mapping

from launcher.advice.facts import FACTS, Value
from launcher.command_line import options_of, speculation_of
from launcher.plan import Plan
from launcher.profile import Device
from proxy.topology import Role


def configured(plan: Plan) -> Mapping[str, Value | None]:
    """Facts by their names."""
    generating = next(each for each in plan.engines if each.role is not Role.PREFILL)
    options = options_of(generating.argv)
    return {
        "device": plan.device.value,
        # All engines on CPUs share those of this machine.
        "devices": 1.0
        if plan.device is Device.CPU
        else float(len({gpu for each in plan.engines for gpu in each.gpus})),
        "pd": plan.connector is not None,
        "quantized": _quantized(plan.checkpoint_scheme, options.get("quantization")),
        "speculation": _speculation(options),
    }


def _quantized(checkpoint: str | None, online: str | None) -> str | None:
    """``None``: a checkpoint whose precision nobody has told."""
    if checkpoint is not None:
        return _word("quantized", checkpoint)
    if online is None:
        return None
    return "fp8" if online.startswith("fp8") else "other"


def _speculation(options: Mapping[str, str]) -> str:
    config = speculation_of(options)
    return _word("speculation", str(config.get("method", "draft_model"))) if config else "none"


def _word(fact: str, word: str) -> str:
    return word if word in FACTS[fact].words else "other"
