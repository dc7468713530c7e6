"""For each rule that reads models' files: a folder in which it finds something, and one like it where it does not."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from launcher.preflight.finding import Case
from tests.launcher.builders import case
from tests.launcher.preflight import folders
from tests.launcher.preflight.folders import (
    AWQ,
    FP8,
    GPTQ,
    adapter,
    checkpoint,
    ct,
    drafted,
    in_awq,
    in_fp8,
    in_gptq,
    in_packed,
    pair,
    plain,
    tokens,
)

Build = Callable[[Path], Case]
_SPLIT = ("roles.prefill.tensor_parallel=2", "roles.decode.tensor_parallel=2")
_SMALL = {"hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 1}
_EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 128}


def of(
    *overrides: str, device: str = "cuda", without: str | None = None, put: str | None = None, **made: object
) -> Build:
    """The pair with a folder; ``without``: a file is missing, ``put``: one more is there, as JSON."""

    def build(folder: Path) -> Case:
        model = checkpoint(folder / "model", **made)  # type: ignore[arg-type]
        if without:
            (model / without).unlink()
        if put:
            name, _, content = put.partition("=")
            (model / name).write_text(content)
        return pair(model, *overrides, device=device)

    return build


def quantized(
    told: Mapping[str, object], store: folders.Store, *overrides: str, device: str = "cuda", **more: object
) -> Build:
    config = {"quantization_config": told, **more.pop("config", {})}  # type: ignore[dict-item]
    return of(*overrides, device=device, config=config, store=store, **more)  # type: ignore[arg-type]


def speculating(method: str, draft: Mapping[str, object], *overrides: str, k: int = 3, **made: object) -> Build:
    """The pair with a draft of this configuration; ``made``: how its folder is written."""

    def build(folder: Path) -> Case:
        model = checkpoint(folder / "model")
        other = checkpoint(folder / "draft", draft, **made)  # type: ignore[arg-type]
        return drafted(model, other, method, *overrides, tokens=k)

    return build


def with_adapter(*overrides: str, without: str | None = None, **told: object) -> Build:
    def build(folder: Path) -> Case:
        model, made = checkpoint(folder / "model"), adapter(folder / "adapter", **told)
        if without:
            (made / without).unlink()
        return pair(model, "model.served_name=org/model", f'model.lora={{adapters: {{a: "{made}"}}}}', *overrides)

    return build


def only(name: str, content: str) -> Build:
    """A folder with one file in place of a model."""

    def build(folder: Path) -> Case:
        (folder / "model").mkdir(parents=True)
        (folder / "model" / name).write_text(content)
        return pair(folder / "model")

    return build


def with_tokenizer(count: int) -> Build:
    def build(folder: Path) -> Case:
        other = folder / "tokenizer"
        other.mkdir(parents=True)
        (other / "tokenizer.json").write_text(json.dumps(tokens(count)))
        return pair(checkpoint(folder / "model"), f'model.tokenizer="{other}"')

    return build


def draft_without(file: str | None) -> Build:
    def build(folder: Path) -> Case:
        model, draft = checkpoint(folder / "model"), checkpoint(folder / "draft", _SMALL)
        if file:
            (draft / file).unlink()
        return drafted(model, draft, "draft_model")

    return build


_INDEX = 'model.safetensors.index.json={"weight_map": {"a": "model.safetensors"%s}}'
_HALF = {"q_proj": plain}
_EXPERT = {f"model.layers.0.mlp.experts.{n}.up_proj.weight": ("BF16", (1024, 512)) for n in range(4)}
_ATTENTION = in_packed("model.layers.0.self_attn.o_proj", 512, 512)
_EXPERTS_LEFT = {**_EXPERT, **_ATTENTION}
_EXPERTS_TOO = {**_ATTENTION, **in_packed("model.layers.0.mlp.experts.0.up_proj", 1024, 512)}
_MLP_LEFT = {"mlp": plain}
_HEAD = {"lm_head.qweight": ("I32", (64, 256)), "lm_head.scales": ("F16", (4, 256)), **in_gptq("a.o_proj", 512, 512)}
_CUSTOM = {"architectures": ["OwnForCausalLM"], "auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "o.M"}}

CHECKPOINT_CASES: Mapping[str, tuple[Build, Build]] = {
    "model/id-is-an-id": (
        lambda _: case("interactive", "model.id=/models/llama"),
        lambda _: case("interactive", "model.id=org/llama"),
    ),
    "model/named-folders": (
        lambda folder: case("interactive", f'speculation.draft="{folder}/gone"'),
        lambda _: case("interactive", "speculation.draft=org/heads"),
    ),
    "model/shards": (of(put=_INDEX % ', "b": "model-2.safetensors"'), of(put=_INDEX % "")),
    "model/readable": (of(put="model.safetensors=nothing"), of()),
    "draft/files-there": (draft_without("config.json"), draft_without(None)),
    "model/adapter": (only("adapter_config.json", '{"base_model_name_or_path": "org/model"}'), of()),
    "model/gguf": (only("model-q4.gguf", ""), of(put="model-q4.gguf=")),
    "model/speculator": (of(config={"speculators_config": {"algorithm": "eagle3"}}), of()),
    "model/architecture": (of(config={"architectures": ["LlamaForCausalLm"]}), of()),
    "model/own-code": (
        of(without="tokenizer.json", put='tokenizer_config.json={"auto_map": {"AutoTokenizer": ["own.T", null]}}'),
        of("model.trust_remote_code=true", without="tokenizer.json"),
    ),
    "tokenizer/there": (of(without="tokenizer.json"), of(without="tokenizer.json", put="vocab.json={}")),
    "tokenizer/chat-template": (of(without="tokenizer_config.json"), of()),
    "tokenizer/fits-model": (with_tokenizer(257), with_tokenizer(256)),
    "model/32-bits": (of("model.dtype=float32"), of("model.dtype=bfloat16")),
    "model/float16": (
        of("model.dtype=float16", config={"model_type": "gemma2"}),
        of("model.dtype=bfloat16", config={"model_type": "gemma2"}),
    ),
    "quantization/cpu-shapes": (
        quantized(ct(group=None), in_packed, device="cpu", config={"intermediate_size": 1000}),
        quantized(ct(group=None), in_packed, device="cpu"),
    ),
    "quantization/group-size": (quantized(ct(group=16), in_packed), quantized(ct(group=64), in_packed)),
    "quantization/variant": (quantized({**GPTQ, "desc_act": True}, in_gptq), quantized(GPTQ, in_gptq)),
    "quantization/known-scheme": (quantized(ct(format="marlin-24"), in_packed), quantized(ct(), in_packed)),
    "quantization/library": (quantized(ct(version="0.19.0"), in_packed), quantized(ct(version="0.17.0"), in_packed)),
    "quantization/padded": (
        quantized(ct(group=32), in_packed, config={"intermediate_size": 1056}),
        quantized(ct(group=32), in_packed),
    ),
    "quantization/group-divides-layer": (
        quantized(ct(), in_packed, config={"intermediate_size": 1000}),
        quantized(ct(), in_packed),
    ),
    "quantization/group-divides-shard": (
        quantized(AWQ, in_awq, "roles.decode.tensor_parallel=8"),
        quantized(AWQ, in_awq, "roles.decode.tensor_parallel=4"),
    ),
    "quantization/blocks-divide-shard": (
        quantized(FP8, in_fp8, *_SPLIT, config={"intermediate_size": 1152}),
        quantized(FP8, in_fp8, config={"intermediate_size": 1152}),
    ),
    "parallel/layer-sizes": (of(*_SPLIT, config={"intermediate_size": 1001}), of(*_SPLIT)),
    "quantization/as-stored": (quantized(GPTQ, plain), quantized(GPTQ, in_gptq)),
    "quantization/bits-as-stored": (quantized(ct(bits=8), in_packed), quantized(ct(), in_packed)),
    "quantization/scales-there": (
        quantized(ct(), lambda name, *size: {f"{name}.weight_packed": in_packed(name, *size)[f"{name}.weight_packed"]}),
        quantized(ct(), in_packed),
    ),
    "quantization/fused-alike": (quantized(ct(), in_packed, but=_HALF), quantized(ct(), in_packed)),
    "quantization/embedding-and-output": (
        quantized(GPTQ, in_gptq, shapes=_HEAD),
        quantized({**GPTQ, "lm_head": True}, in_gptq, shapes=_HEAD),
    ),
    "quantization/experts": (quantized(ct(), plain, shapes=_EXPERTS_LEFT), quantized(ct(), plain, shapes=_EXPERTS_TOO)),
    "quantization/share": (quantized(ct(), in_packed, but=_MLP_LEFT), quantized(ct(), in_packed)),
    "quantization/names-in-ignore": (
        quantized(ct(ignore=["model.layers.9.mlp.down_proj"]), in_packed),
        quantized(ct(ignore=["lm_head", "re:.*down_proj"]), in_packed),
    ),
    "draft/kind": (speculating("eagle3", _SMALL), speculating("draft_model", _SMALL)),
    "draft/name-chooses-method": (
        lambda _: case("single-gpu", "speculation.draft=org/tiny-eagle-1b"),
        lambda _: case("single-gpu"),
    ),
    "draft/heads-fit": (speculating("eagle3", {**_EAGLE3, "hidden_size": 256}), speculating("eagle3", _EAGLE3)),
    "draft/tokens-per-step": (
        speculating("mtp", {"num_nextn_predict_layers": 2}, k=3),
        speculating("mtp", {"num_nextn_predict_layers": 2}, k=2),
    ),
    "draft/vocabulary-size": (
        speculating("draft_model", {**_SMALL, "vocab_size": 250}),
        speculating("draft_model", {**_SMALL, "vocab_size": 250}, "speculation.heterogeneous_vocab=true"),
    ),
    "draft/vocabulary": (
        speculating("draft_model", _SMALL, text=tokens(256, other=7)),
        speculating("draft_model", _SMALL),
    ),
    "draft/length": (
        speculating("draft_model", {**_SMALL, "max_position_embeddings": 2048}),
        speculating("draft_model", {**_SMALL, "max_position_embeddings": 32768}),
    ),
    "draft/quantization": (
        speculating("draft_model", {**_SMALL, "quantization_config": GPTQ}, "speculation.draft.quantization=awq"),
        speculating("draft_model", {**_SMALL, "quantization_config": GPTQ}, "speculation.draft.quantization=gptq"),
    ),
    "draft/size": (speculating("draft_model", {}), speculating("draft_model", _SMALL)),
    "lora/files-there": (with_adapter(without="adapter_model.safetensors"), with_adapter()),
    "lora/rank": (with_adapter(r=32), with_adapter("model.lora.max_rank=32", r=32)),
    "lora/variant": (with_adapter(use_dora=True), with_adapter(use_dora=False)),
    "lora/base-model": (with_adapter(base_model_name_or_path="org/other"), with_adapter()),
    "lora/modules": (with_adapter(target_modules=["fc1"]), with_adapter()),
}
