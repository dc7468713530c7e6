"""Is what the profile names as its model a model that answers in text?"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.engine_models import Kind, look_up
from launcher.preflight.checkpoints.loaded import Loaded, target
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_TELLS_OTHERWISE = frozenset({"hf-overrides", "model-impl", "runner", "convert", "model-class-overrides"})
"""Options by which an engine takes a model for something else than its folder says."""


def _adapter(case: Case) -> Iterator[Fault]:
    """A folder of LoRA weights in place of a model."""
    model = target(case)
    if model is None or not is_adapter(model.folder):
        return
    base = model.folder.adapter.get("base_model_name_or_path") or "its base model"
    yield Fault(
        model.key,
        f"{model.name} is a LoRA adapter, not a model",
        f"name {base} as the model, and this folder as an adapter: model.lora.adapters.NAME: {model.name}",
        "an adapter has only the differences to its base model",
    )


def _gguf(case: Case) -> Iterator[Fault]:
    """A folder of llama.cpp's format in place of a model."""
    model = target(case)
    if model is None or not model.folder.gguf or model.folder.weight_files:
        return
    yield Fault(
        model.key,
        f"{model.name} holds {model.folder.gguf[0]}, which vLLM 0.32 does not read",
        "serve the model's safetensors files (an AWQ, GPTQ or compressed-tensors checkpoint for 4 bits)",
        "support of GGUF left vLLM for a plugin",
    )


def _speculator(case: Case) -> Iterator[Fault]:
    """A draft that was trained with the speculators library, in place of a model."""
    model = target(case)
    told = None if model is None else model.folder.config.get("speculators_config")
    if model is None or not isinstance(told, Mapping):
        return
    verifier = told.get("verifier")
    name = verifier.get("name_or_path") if isinstance(verifier, Mapping) else None
    yield Fault(
        model.key,
        f"{model.name} is a draft ({told.get('algorithm', 'speculators_config')}), not a model",
        f"name {name or 'the model that it was trained for'} as the model, and this one as speculation.draft",
        "the engine would load its target and speculation by itself, and nothing of it would be planned",
    )


def _architecture(case: Case) -> Iterator[Fault]:
    """An architecture that the engine does not know, or that gives no text."""
    model = target(case)
    if model is None or not model.folder.config or _is_told_otherwise(case) or is_adapter(model.folder):
        return
    config = model.folder.config
    names = config.get("architectures")
    names = [str(name) for name in names] if isinstance(names, list) else []
    if isinstance(config.get("speculators_config"), Mapping):
        return
    if not names:
        yield Fault(
            model.key,
            f"{model.name}/config.json names no architecture",
            'add "architectures": [...] as the model\'s publisher has it',
            "vLLM finds a model's code by this name",
        )
        return
    answers = [look_up(name) for name in names]
    if not any(answer.kind is Kind.GENERATES for answer in answers):
        other_engine = case.profile.engine_command is not None
        for fault in _of(model, names[0], config, case.profile.model.trust_remote_code):
            yield replace(fault, severity=Severity.WARNING) if other_engine else fault


def _of(model: Loaded, name: str, config: Mapping[str, Any], trusts: bool) -> Iterator[Fault]:
    answer = look_up(name)
    told = f"{model.name} is a {name}"
    values = {"config.json: architectures": name}
    match answer.kind:
        case Kind.POOLS:
            what, fix = f"{told}, which gives embeddings, classes or scores", "serve a model that generates text"
        case Kind.DRAFTS:
            what, fix = f"{told}, which only drafts for another model", "name it as speculation.draft, beside its model"
        case Kind.BY_PLUGIN:
            what, fix = f"{told}, which vLLM 0.32 has only as a plugin", f"install the plugin of {answer.detail}"
        case Kind.REMOVED:
            what = f"{told}, which vLLM had until {answer.detail}"
            fix = "serve another model, or set engine_command to that older vLLM"
        case Kind.BY_TRANSFORMERS:
            yield Fault(
                model.key,
                f"{told}, which vLLM 0.32 runs by Transformers' code",
                "measure it; choose an architecture that vLLM has for speed",
                "this is slower, and not all of quantization and speculation works with it",
                values,
                Severity.WARNING,
            )
            return
        case _ if config.get("auto_map") and trusts:
            return  # the engine tries the folder's own code
        case _ if config.get("auto_map"):
            what, fix = (
                f"{told}, known only to the folder's own code",
                "read that code, and set model.trust_remote_code",
            )
        case _:
            what = f"{told}, which vLLM 0.32 does not know"
            fix = "upgrade the engine or serve another model"
            if answer.detail:
                fix = f"check the name: {answer.detail} is known; else {fix}"
    yield Fault(model.key, what, fix, "the engine ends when it starts" if "code" not in what else "", values)


def _is_told_otherwise(case: Case) -> bool:
    places = (case.profile.engine_args, *(settings.engine_args for _, settings in case.profile.roles.items()))
    return any(option.replace("_", "-").partition(".")[0] in _TELLS_OTHERWISE for each in places for option in each)


def is_adapter(folder: ModelFolder) -> bool:
    """Whether a folder has an adapter's weights, and no model's."""
    return bool(folder.adapter) and not folder.config


_REGISTRY = "vLLM 0.32: model_executor/models/registry.py"
RULES = (
    Rule("model/adapter", Layer.STATIC, "PEFT's folder layout", _adapter, needs_model=True),
    Rule("model/gguf", Layer.STATIC, "vLLM 0.32: built-in quantization methods and loaders", _gguf, needs_model=True),
    Rule("model/speculator", Layer.STATIC, "vLLM 0.32: maybe_override_with_speculators", _speculator, needs_model=True),
    Rule("model/architecture", Layer.STATIC, _REGISTRY, _architecture, needs_model=True),
)
