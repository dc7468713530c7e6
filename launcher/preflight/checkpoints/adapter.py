"""Do adapters fit the model, and is there room for their rank?"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from launcher.preflight.checkpoints.linear_layers import FUSED
from launcher.preflight.checkpoints.loaded import Loaded, adapters, target
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import LoRA

_RANKS: tuple[int, ...] = get_args(LoRA.model_fields["max_rank"].annotation)
_WEIGHTS = frozenset({"adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt"})
_PLAIN_STARTS = frozenset({"gaussian", "eva", "orthogonal", "mica", "lora_ga"})
"""Ways to begin a training that leave the base model as it is."""
_REFUSED: Mapping[str, str] = {
    "use_dora": "DoRA",
    "lora_bias": "biases of its own (lora_bias)",
    "alora_invocation_tokens": "activation by tokens (aLoRA)",
    "layer_replication": "copies of layers (layer_replication)",
    "use_bdlora": "blocks on the diagonal (BD-LoRA)",
    "use_qalora": "QALoRA",
}


def _there(case: Case) -> Iterator[Fault]:
    """Folders without an adapter's files."""
    for each in adapters(case):
        names = each.folder.names
        missing = "adapter_config.json" if "adapter_config.json" not in names else None
        if missing is None and not _WEIGHTS & names:
            missing = "adapter_model.safetensors"
        if missing is not None:
            what = f"{each.name} is a whole model, not an adapter" if "config.json" in names else ""
            yield Fault(
                each.key,
                what or f"{each.name} has no {missing}",
                "name the folder that PEFT's save_pretrained made",
                "the engine ends when it loads the adapter",
            )


def _rank(case: Case) -> Iterator[Fault]:
    """A larger rank than ``max_rank``."""
    lora = case.profile.model.lora
    for each in adapters(case) if lora is not None else ():
        told = each.folder.adapter
        pattern = told.get("rank_pattern")
        ranks = [told.get("r"), *(pattern.values() if isinstance(pattern, Mapping) else ())]
        rank = max((each for each in ranks if isinstance(each, int)), default=0)
        if lora is not None and rank > lora.max_rank:
            enough = next((size for size in _RANKS if size >= rank), None)
            yield Fault(
                "model.lora.max_rank",
                f"the adapter {each.name} has rank {rank}, more than max_rank {lora.max_rank}",
                f"set model.lora.max_rank: {enough}" if enough else f"train it with a rank of {_RANKS[-1]} or less",
                "the engine refuses the adapter when it starts",
                {"adapter_config.json: r": str(rank), "model.lora.max_rank": str(lora.max_rank)},
            )


def _kinds(case: Case) -> Iterator[Fault]:
    """Variants of LoRA that the engine does not compute."""
    for each in adapters(case):
        told = each.folder.adapter
        found = [what for key, what in _REFUSED.items() if told.get(key)]
        if told.get("bias", "none") != "none":
            found.append(f"biases (bias: {told.get('bias')})")
        start = told.get("init_lora_weights")
        if isinstance(start, str) and start.lower() not in _PLAIN_STARTS:
            found.append(f"a changed base model (init_lora_weights: {start})")
        saved = told.get("modules_to_save")
        if isinstance(saved, list) and (others := [str(name) for name in saved if name not in {"classifier", "score"}]):
            found.append(f"whole layers ({', '.join(others)} in modules_to_save)")
        if found:
            yield Fault(
                each.key,
                f"the adapter {each.name} has {' and '.join(found)}, which vLLM 0.32 does not compute",
                "train it as plain LoRA, or merge it into the model and serve that",
                "the engine refuses the adapter when it starts",
            )


def _base(case: Case) -> Iterator[Fault]:
    """Trained for another model."""
    model = target(case)
    for each in adapters(case) if model is not None else ():
        told = each.folder.adapter.get("base_model_name_or_path")
        if not isinstance(told, str) or not told or model is None:
            continue
        names = {
            Path(model.name).name.lower(),
            str(model.folder.config.get("_name_or_path", "")).lower().split("/")[-1],
        }
        names |= {(case.profile.model.served_name or "").lower().split("/")[-1]} - {""}
        base = Path(told).name.lower()
        if not any(_alike(base, name) for name in names - {""}):
            yield Fault(
                each.key,
                f"the adapter {each.name} was trained for {told}, the profile serves {model.name}",
                "serve the model that it was trained for, or a quantized copy of it",
                "added to another model, it makes answers worse without any error",
                {"adapter_config.json: base_model_name_or_path": told, model.key: model.name},
                Severity.WARNING,
            )


def _modules(case: Case) -> Iterator[Fault]:
    """Layers that the model does not have, or has in another size."""
    model = target(case)
    if model is None or not model.folder.tensors or model.folder.missing:
        return
    known = {part for tensor in model.folder.tensors for part in tensor.name.split(".")}
    known |= {whole for whole, parts in FUSED.items() if known.issuperset(parts)}
    for each in adapters(case):
        if lost := [name for name in _targets(each) if name.split(".")[-1] not in known]:
            yield Fault(
                each.key,
                f"the adapter {each.name} changes {', '.join(lost)}, which {model.name} has not",
                "serve the model that it was trained for",
                "the engine refuses the adapter when it starts",
            )
        elif (wrong := _inputs(each)) and isinstance(hidden := model.folder.text.get("hidden_size"), int):
            name, inputs = wrong
            if inputs != hidden:
                yield Fault(
                    each.key,
                    f"the adapter {each.name} has {inputs} inputs in {name}, {model.name} has {hidden}",
                    "serve the model that it was trained for",
                    "the engine refuses the adapter when it starts",
                )


def _targets(each: Loaded) -> list[str]:
    told: Any = each.folder.adapter.get("target_modules")
    return [str(name) for name in told] if isinstance(told, list) else []


def _inputs(each: Loaded) -> tuple[str, int] | None:
    """Of a layer whose inputs are the model's states."""
    for tensor in each.folder.tensors:
        if tensor.name.endswith(("q_proj.lora_A.weight", "gate_proj.lora_A.weight")) and len(tensor.shape) == 2:
            return tensor.name, tensor.shape[1]
    return None


def _alike(one: str, other: str) -> bool:
    """Whether one is the other, perhaps quantized: the longer name begins with the shorter."""
    return one.startswith(other) or other.startswith(one)


_PEFT = "vLLM 0.32: lora/peft_helper.py"
RULES = (
    Rule("lora/files-there", Layer.STATIC, _PEFT, _there, needs_model=True),
    Rule("lora/rank", Layer.STATIC, _PEFT, _rank, needs_model=True),
    Rule("lora/variant", Layer.STATIC, _PEFT, _kinds, needs_model=True),
    Rule("lora/base-model", Layer.STATIC, "PEFT: base_model_name_or_path", _base, needs_model=True),
    Rule("lora/modules", Layer.STATIC, "vLLM 0.32: LoRAModel.from_local_checkpoint", _modules, needs_model=True),
)
