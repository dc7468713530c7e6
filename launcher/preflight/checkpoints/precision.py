"""Are weights stored and computed in numbers that go together?"""

from collections.abc import Iterator

from launcher.preflight.checkpoints.loaded import target
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_NOT_IN_HALF = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
"""``model_type`` of models whose activations are too large for float16."""
_GIB = 2**30


def _in_32_bits(case: Case) -> Iterator[Fault]:
    """Weights of 32 bits, in the file or in the engine."""
    model = target(case)
    if model is None:
        return
    sizes = {
        kind: sum(each.size for each in model.folder.tensors if each.dtype == kind) for kind in ("F32", "BF16", "F16")
    }
    wide, half = sizes["F32"], sizes["BF16"] + sizes["F16"]
    asked = case.profile.model.dtype
    if asked == "float32" and half > wide:
        yield Fault(
            "model.dtype",
            f"{half / _GIB:.1f} GiB of 16-bit weights would be computed in float32",
            "set model.dtype to auto",
            f"they take {2 * half / _GIB:.1f} GiB then, and not one answer is more exact",
            severity=Severity.WARNING,
        )
    elif asked != "float32" and wide > max(half, sum(model.folder.weight_files.values()) // 2):
        yield Fault(
            model.key,
            f"{model.name} is stored in 32 bits ({wide / _GIB:.1f} GiB), and the engine computes it in 16",
            "convert it to bfloat16 once: half of the disk, half of the time to load",
            "the memory of the engine is that of 16 bits; of the machine while it loads, that of 32",
            severity=Severity.WARNING,
        )


def _half(case: Case) -> Iterator[Fault]:
    """Models that overflow in float16."""
    model = target(case)
    kind = None if model is None else model.folder.config.get("model_type")
    if case.profile.model.dtype == "float16" and kind in _NOT_IN_HALF:
        yield Fault(
            "model.dtype",
            f"vLLM 0.32 refuses float16 for {kind}",
            "set model.dtype to auto or bfloat16",
            "its activations are too large for float16",
        )


RULES = (
    Rule("model/32-bits", Layer.STATIC, "vLLM 0.32: how dtype auto is resolved", _in_32_bits, needs_model=True),
    Rule("model/float16", Layer.STATIC, "vLLM 0.32: config/model.py", _half, needs_model=True),
)
