"""Is the checkpoint quantized the way the profile says?"""

from collections.abc import Iterator, Mapping
from typing import Any

from launcher.model_folder import quantization_of
from launcher.preflight.checkpoint import config_of
from launcher.preflight.finding import Case, Fault, Layer, Rule


def _declared(case: Case) -> Iterator[Fault]:
    """A model folder whose config.json tells another scheme than ``quantization.checkpoint_scheme``."""
    plan = case.plan
    config = case.once(config_of)
    if plan.checkpoint_scheme is None or not config:
        return
    found = scheme(quantization_of(config))
    if found != plan.checkpoint_scheme:
        yield Fault(
            "quantization.checkpoint_scheme",
            f"the profile says {plan.checkpoint_scheme}, {plan.model}/config.json says {found or 'not quantized'}",
            "correct the profile or serve another checkpoint",
            values={"quantization.checkpoint_scheme": plan.checkpoint_scheme, "config.json": found or "not quantized"},
        )


def scheme(quantization: Mapping[str, Any] | None) -> str | None:
    """``int4``, ``int8`` or ``fp8`` from a ``quantization_config``; ``None`` for none, else the method's own name."""
    if not quantization:
        return None
    method = str(quantization.get("quant_method", "")).lower().replace("_", "-")
    weights = quantization
    if method == "compressed-tensors":
        groups = _mapping(quantization.get("config_groups"))
        weights = next((_mapping(_mapping(group).get("weights")) for group in groups.values()), {})
    bits = weights.get("bits") or weights.get("w_bit") or weights.get("num_bits")
    if method in {"fp8", "fbgemm-fp8"} or quantization.get("quant_algo") == "FP8":
        return "fp8"
    if weights.get("type") == "float":
        return f"fp{bits}"
    return f"int{bits}" if bits else method


def _mapping(value: object) -> Mapping[str, Any]:
    """What should be a mapping and in a foreign file may be anything."""
    return value if isinstance(value, Mapping) else {}


RULES = (
    Rule("quantization/as-declared", Layer.STATIC, "vLLM reads the checkpoint's own", _declared, needs_model=True),
)
