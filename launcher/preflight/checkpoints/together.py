"""Are layers that belong together stored alike, and are embedding and output what the engine can use?"""

from collections.abc import Iterator, Mapping, Sequence

from launcher.model_folder import Tensor
from launcher.preflight.checkpoints.linear_layers import FLOATS, FUSED, Linear, is_head, linear_layers, modules_of
from launcher.preflight.checkpoints.loaded import models
from launcher.preflight.checkpoints.weight_scheme import method_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_PACKED = frozenset({"qweight", "weight_packed"})


def _fused(case: Case) -> Iterator[Fault]:
    """Layers that the engine makes one of, and that are stored in unlike ways."""
    for model in models(case):
        if method_of(model.folder) is None:
            continue
        layers = {each.name: each for each in case.reader.once(linear_layers, model.folder)}
        unlike = [(whole, parts) for whole, parts in _together(layers) if _differ(parts)]
        if unlike:
            whole, parts = unlike[0]
            told = ", ".join(f"{each.last} {_kind(each)}" for each in parts)
            more = f" and {len(unlike) - 1} more" if unlike[1:] else ""
            yield Fault(
                model.key,
                f"{whole}{more} of {model.name} is one layer in the engine, and its parts are stored in unlike ways "
                f"({told})",
                "quantize it again with all of them alike: in `ignore` together, or not at all",
                '"Found different quantization schemes for the shards": the engine ends when it loads',
            )


def _heads(case: Case) -> Iterator[Fault]:
    """Quantized embeddings and output layers that the engine cannot use."""
    for model in models(case):
        modules, method = case.reader.once(modules_of, model.folder), method_of(model.folder)
        for module, parts in modules.items():
            is_quantized = bool(_PACKED & parts.keys()) or _is_8_bit(parts.get("weight"))
            if not is_quantized or not (is_head(module) or module.endswith(("embed_tokens", "wte"))):
                continue
            if not is_head(module):
                if method != "compressed-tensors":
                    yield Fault(
                        model.key,
                        f"{module} of {model.name} is quantized, which vLLM 0.32 reads only of compressed-tensors",
                        "quantize it again without the embedding",
                    )
            elif model.folder.text.get("tie_word_embeddings") is True:
                yield Fault(
                    model.key,
                    f"{module} of {model.name} is quantized, but config.json says it is the embedding "
                    "(tie_word_embeddings)",
                    "set tie_word_embeddings: false in config.json, or quantize it again with lm_head in `ignore`",
                    "the engine leaves these weights out and takes the embedding",
                    severity=Severity.WARNING,
                )
            elif method in {"gptq", "awq"} and model.folder.quantization.get("lm_head") is not True:
                yield Fault(
                    model.key,
                    f"{module} of {model.name} is quantized, but its quantization_config does not say so",
                    "add lm_head: true to quantization_config",
                    "the engine expects 16 bits there and does not load it",
                )


def _together(layers: Mapping[str, Linear]) -> Iterator[tuple[str, list[Linear]]]:
    for name, layer in layers.items():
        for whole, names in FUSED.items():
            if layer.last == names[0] and not layer.is_expert:
                start = name.removesuffix(names[0])
                parts = [layers[start + each] for each in names if start + each in layers]
                if len(parts) > 1:
                    yield start + whole, parts


def _differ(parts: Sequence[Linear]) -> bool:
    return len({(each.scheme, each.is_quantized) for each in parts}) > 1


def _kind(layer: Linear) -> str:
    scheme = layer.scheme
    if not layer.is_quantized or scheme is None:
        return "16 bits" if not layer.is_quantized and not scheme else "unlike config.json"
    return f"{'int' if scheme.is_integer else 'fp'}{scheme.bits}" + (f" by {scheme.group}" if scheme.group else "")


def _is_8_bit(tensor: Tensor | None) -> bool:
    return tensor is not None and len(tensor.shape) == 2 and tensor.dtype not in FLOATS


_SHARDS = "vLLM 0.32: should_ignore_layer, is_layer_skipped"
RULES = (
    Rule("quantization/fused-alike", Layer.STATIC, _SHARDS, _fused, needs_model=True),
    Rule("quantization/embedding-and-output", Layer.STATIC, "vLLM 0.32: get_quant_method", _heads, needs_model=True),
)
