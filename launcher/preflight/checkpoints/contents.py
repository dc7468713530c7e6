"""Are the weights in the files stored as config.json says?"""

from collections.abc import Iterator, Sequence

from launcher.model_folder import ModelFolder, Tensor
from launcher.preflight.checkpoints.linear_layers import FLOATS, FUSED, Linear, linear_layers, modules_of
from launcher.preflight.checkpoints.loaded import Loaded, models
from launcher.preflight.checkpoints.weight_scheme import method_of
from launcher.preflight.finding import Case, Fault, Layer, Rule

_ORDINARY = frozenset(name for names in FUSED.values() for name in names) | {"o_proj", "down_proj", "w1", "w2", "w3"}
"""Layers that are quantized in every checkpoint that says it is."""
_PACKED = frozenset({"qweight", "weight_packed"})
_SCALES = ("scales", "weight_scale", "weight_scale_inv", "weight_scale_2", "weight_global_scale", "scale", "scale_inv")
_FOLLOWS_FILES = frozenset({"gptq", "awq", "auto-round", "inc"})
_SHOWN = 3


def _as_said(case: Case) -> Iterator[Fault]:
    """Weights in other numbers than config.json says."""
    for model in models(case):
        layers = list(_ordinary(case, model.folder))
        method = method_of(model.folder)
        if not layers:
            continue
        told = [each for each in layers if each.is_quantized]
        if method is None and told:
            yield _otherwise(
                model, told, f"are quantized ({told[0].kind})", "says nothing of it", "quantization_config"
            )
        elif method in _FOLLOWS_FILES and not told:
            yield _otherwise(model, layers, f"are {layers[0].kind}", f"says {method}", "quantization_config")
        elif method in {"compressed-tensors", "fp8"}:
            if plain := [each for each in layers if each.scheme and not each.is_quantized]:
                yield _otherwise(model, plain, f"are {plain[0].kind}", f"says {method}", "ignore")
            if left := [each for each in layers if not each.scheme and each.is_quantized]:
                yield _otherwise(model, left, f"are quantized ({left[0].kind})", "leaves them as they are", "ignore")


def _width(case: Case) -> Iterator[Fault]:
    """Packed weights that come out with other inputs than the model has: their bits are others than said."""
    for model in models(case):
        hidden = model.folder.text.get("hidden_size")
        wrong = [
            each
            for each in _ordinary(case, model.folder)
            if each.is_quantized
            and each.kind in {"I32", "U32"}
            and each.scheme
            and each.last in {"gate_proj", "up_proj"}
            and each.inputs != hidden
        ]
        if isinstance(hidden, int) and wrong:
            scheme = wrong[0].scheme
            yield Fault(
                model.key,
                f"config.json says {scheme.bits if scheme else 0} bits, which makes {wrong[0].inputs} inputs of the "
                f"packed {_names(wrong)}, and hidden_size is {hidden} ({model.name})",
                "fetch config.json again together with the weights: they are of two checkpoints",
                "the engine would not load them",
            )


def _scales(case: Case) -> Iterator[Fault]:
    """Quantized weights without what brings them back to size."""
    for model in models(case):
        bare = [
            module
            for module, parts in case.reader.once(modules_of, model.folder).items()
            if (_PACKED & parts.keys() or _is_8_bit(parts.get("weight"))) and not any(name in parts for name in _SCALES)
        ]
        if bare and not model.folder.missing:
            names = ", ".join(bare[:_SHOWN]) + (", ..." if bare[_SHOWN:] else "")
            yield Fault(
                model.key,
                f"{len(bare)} quantized layers of {model.name} have no scales ({names})",
                "fetch the checkpoint again, or quantize it again: it is not whole",
                "weights of any size would be taken for right, and answers are nonsense",
            )


def _ordinary(case: Case, folder: ModelFolder) -> list[Linear]:
    """Of the language model's own layers, those of which it is clear what they are."""
    if not folder.tensors:
        return []
    layers = folder.text.get("num_hidden_layers")
    last = layers if isinstance(layers, int) else None
    return [
        each
        for each in case.reader.once(linear_layers, folder)
        if each.last in _ORDINARY and not each.is_tower and not _is_behind(each.name, last)
    ]


def _is_behind(name: str, last: int | None) -> bool:
    """Whether it belongs to layers behind the last, which only draft."""
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    return name.startswith("mtp.") or (last is not None and bool(numbers) and numbers[0] >= last)


def _otherwise(model: Loaded, found: Sequence[Linear], are: str, says: str, key: str) -> Fault:
    return Fault(
        model.key,
        f"{len(found)} layers of {model.name} {are} ({_names(found)}), and config.json {says}",
        f"fetch config.json again together with the weights, or correct {key} in it",
        "the engine would not load them, or take numbers for what they are not",
    )


def _is_8_bit(tensor: Tensor | None) -> bool:
    return tensor is not None and len(tensor.shape) == 2 and tensor.dtype not in FLOATS


def _names(found: Sequence[Linear]) -> str:
    return ", ".join(each.name for each in found[:_SHOWN]) + (", ..." if found[_SHOWN:] else "")


_HEADERS = "the headers of the weight files against config.json"
RULES = (
    Rule("quantization/as-stored", Layer.STATIC, _HEADERS, _as_said, needs_model=True),
    Rule("quantization/bits-as-stored", Layer.STATIC, _HEADERS, _width, needs_model=True),
    Rule("quantization/scales-there", Layer.STATIC, _HEADERS, _scales, needs_model=True),
)
