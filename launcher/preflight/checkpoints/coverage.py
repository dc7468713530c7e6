"""How much of a quantized checkpoint is quantized?"""

from collections.abc import Iterator, Sequence

from launcher.model_folder import Tensor
from launcher.preflight.checkpoints.linear_layers import FLOATS
from launcher.preflight.checkpoints.loaded import Loaded, models
from launcher.preflight.checkpoints.weight_scheme import Names, kept_of, method_is_exact, method_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_IN_ONE = {"I32": 8, "U32": 8, "U8": 2, "F4": 1}
"""Numbers in one element of a quantized tensor, at least; others have one."""
_LEAST = 0.5
_OUTSIDE = ("embed", "lm_head", "wte", "vision", "visual", "audio", "norm", "projector")
_SHOWN = 3


def _experts(case: Case) -> Iterator[Fault]:
    """A mixture whose experts, nearly all of its weights, are as they were."""
    for model in models(case):
        inside = _weights(model)
        experts = [each for each in inside if _is_expert(each.name)]
        others = [each for each in inside if not _is_expert(each.name)]
        if experts and not any(map(_is_quantized, experts)) and any(map(_is_quantized, others)):
            share = _numbers(experts) / _numbers(inside)
            yield Fault(
                model.key,
                f"none of the {len(experts)} weights of experts of {model.name} is quantized: {share:.0%} of its "
                f"numbers, {sum(each.size for each in experts) / 2**30:.1f} GiB",
                "quantize it again: expand experts that are stored as one tensor, and take them out of `ignore`",
                "it is hardly smaller or faster than the 16-bit checkpoint",
                {"share": f"{share:.2f}"},
                Severity.WARNING,
            )


def _share(case: Case) -> Iterator[Fault]:
    """A checkpoint most of which is as it was."""
    for model in models(case):
        inside = _weights(model)
        quantized = [each for each in inside if _is_quantized(each)]
        if not inside or not quantized or any(_is_expert(each.name) for each in inside if not _is_quantized(each)):
            continue
        share = _numbers(quantized) / _numbers(inside)
        if share < _LEAST:
            left = [each for each in inside if not _is_quantized(each)]
            names = ", ".join(each.name.removesuffix(".weight") for each in left[:_SHOWN])
            yield Fault(
                model.key,
                f"only {share:.0%} of the numbers in the layers of {model.name} are quantized: {len(left)} weights are "
                f"not ({names}, ...)",
                "look at `ignore` and `targets` in its quantization_config, and quantize it again",
                "it is hardly smaller or faster than the 16-bit checkpoint",
                {"share": f"{share:.2f}"},
                Severity.WARNING,
            )


def _patterns(case: Case) -> Iterator[Fault]:
    """Names of layers to be left as they are that no layer has."""
    for model in models(case):
        told = model.folder.quantization
        if not model.folder.tensors or model.folder.missing:
            continue
        modules = {name for each in model.folder.tensors for name in _above(each.name)}
        exact = method_is_exact(told)
        lost = [
            name
            for name in kept_of(told)
            if not any(part in name for part in _OUTSIDE)
            and name not in modules
            and not any(map(Names([name], exact=exact).mean, modules))
        ]
        if lost:
            yield Fault(
                model.key,
                f"{len(lost)} names in `ignore` mean no layer of {model.name}: {', '.join(lost[:_SHOWN])}",
                "correct them, with the layers' names as in the weight files",
                "what was meant to keep its 16 bits is quantized, or another name misses it in the engine",
                severity=Severity.WARNING,
            )


def _weights(model: Loaded) -> Sequence[Tensor]:
    """Those of the layers of a quantized checkpoint, without scales."""
    if method_of(model.folder) is None or model.folder.missing:
        return ()
    return [
        each
        for each in model.folder.tensors
        if len(each.shape) >= 2
        and not any(part in each.name for part in _OUTSIDE)
        and not each.name.endswith(("scale", "scales", "scale_inv", "qzeros", "g_idx", "zero_point", "shape"))
        and not (each.name.endswith((".gate.weight", "router.weight")))
    ]


def _above(name: str) -> Iterator[str]:
    """``a.b.c``: ``a.b.c``, ``a.b`` and ``a``."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(len(parts), 0, -1))


def _is_expert(name: str) -> bool:
    return ".experts." in name or name.endswith(".experts")


def _is_quantized(tensor: Tensor) -> bool:
    return tensor.dtype not in FLOATS


def _numbers(found: Sequence[Tensor]) -> int:
    return sum(each.elements * (_IN_ONE.get(each.dtype, 1) if _is_quantized(each) else 1) for each in found)


_SOURCE = "quantizers skip what they do not know without an error"
RULES = (
    Rule("quantization/experts", Layer.STATIC, _SOURCE, _experts, needs_model=True),
    Rule("quantization/share", Layer.STATIC, _SOURCE, _share, needs_model=True),
    Rule("quantization/names-in-ignore", Layer.STATIC, _SOURCE, _patterns, needs_model=True),
)
