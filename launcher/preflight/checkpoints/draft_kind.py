"""Is the draft of the kind that the method wants?"""

from collections.abc import Iterator
from enum import Enum

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.engine_models import Kind, look_up
from launcher.preflight.checkpoints.loaded import drafts, target
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import SpeculationMethod

_TAKEN_OVER = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
"""Parts of a draft's name by which the engine chooses the method, whatever it was told, in its order."""
_KEEPS_ITS_METHOD = frozenset({"eagle", "eagle3", "dflash", "dspark"})


class Draft(Enum):
    """What a draft's folder holds; the text is what one calls it."""

    MODEL = "a whole language model"
    EAGLE = "an EAGLE head"
    EAGLE3 = "an EAGLE-3 head"
    MEDUSA = "Medusa heads"
    MTP = "layers for multi-token prediction"
    DFLASH = "a DFlash draft"
    DSPARK = "a DSpark draft"
    MLP = "an MLP speculator"


_METHODS = {
    Draft.MODEL: ("draft_model",),
    Draft.EAGLE: ("eagle",),
    Draft.EAGLE3: ("eagle3",),
    Draft.MEDUSA: ("medusa",),
    Draft.MTP: ("mtp",),
    Draft.DFLASH: ("dflash",),
    Draft.DSPARK: ("dspark",),
    Draft.MLP: ("mlp_speculator",),
}


def kind_of(folder: ModelFolder) -> Draft | None:
    """By its architecture and its tensors; ``None`` where they do not tell."""
    config = folder.config
    names = config.get("architectures")
    name = str(names[0]) if isinstance(names, list) and names else ""
    family = str(config.get("model_type") or "")
    told = config.get("speculators_config")
    algorithm = str(told.get("algorithm")) if isinstance(told, dict) else ""
    text = f"{name} {algorithm}".lower()
    for part, kind in (
        *(("dspark", Draft.DSPARK), ("dflash", Draft.DFLASH), ("medusa", Draft.MEDUSA), ("eagle3", Draft.EAGLE3)),
        *(("peagle", Draft.EAGLE3), ("eagle", Draft.EAGLE), ("mtp", Draft.MTP), ("speculator", Draft.MLP)),
    ):
        if part in text or family.startswith(part):
            return kind
    if not name or look_up(name).kind is not Kind.GENERATES:
        return Draft.MEDUSA if "medusa_num_heads" in config else None
    tensors = {each.name.removeprefix("model.") for each in folder.tensors}
    if {"d2t", "t2d"} & tensors or any(each.startswith("midlayer.") for each in tensors):
        return Draft.EAGLE3
    if "fc.weight" in tensors:  # it joins the target's states to the tokens
        return Draft.EAGLE
    layers = folder.text.get("num_hidden_layers")
    return Draft.MODEL if tensors or (isinstance(layers, int) and layers > 2) else None


def _kind(case: Case) -> Iterator[Fault]:
    """A method that cannot load what the draft's folder holds."""
    for each in drafts(case):
        kind, method = kind_of(each.draft.folder), each.speculation.method.value
        if kind is None or method in _METHODS[kind] or (method == "dspark" and kind is Draft.MTP):
            continue
        if method == "mtp" and kind is Draft.MODEL and _has_mtp(each.draft.folder):
            continue
        fix = f"set {each.key}.method to {_METHODS[kind][0]}"
        yield Fault(
            f"{each.key}.method",
            f"{each.draft.name} is {kind.value}, which method {method} does not load",
            f"{fix}, or name a draft made for {method}",
            "the engine ends when it loads the draft, or drafts nonsense",
            {f"{each.key}.method": method, "draft": kind.value},
        )


def _taken_over(case: Case) -> Iterator[Fault]:
    """Names of drafts by which the engine takes another method than told."""
    for each in _all_named(case):
        key, method, name = each
        other = next((known for part, known in _TAKEN_OVER if part in name.lower()), None)
        if other is not None and method not in _KEEPS_ITS_METHOD:
            yield Fault(
                f"{key}.draft",
                f"the engine takes method {other} in place of {method}, since the draft's name has it in it ({name})",
                f"set {key}.method to {other}, or move the draft to a path without that word",
                "vLLM looks at the name before it looks at the method",
                {f"{key}.method": method},
            )


def _head_fits(case: Case) -> Iterator[Fault]:
    """Heads that were made for a model of another size."""
    model = target(case)
    if model is None:
        return
    for each in drafts(case):
        if kind_of(each.draft.folder) not in {Draft.EAGLE, Draft.EAGLE3, Draft.MEDUSA, Draft.DFLASH, Draft.MTP}:
            continue
        folder = each.draft.folder
        told = folder.config.get("target_hidden_size") or folder.text.get("hidden_size")
        wanted = model.folder.text.get("hidden_size")
        if isinstance(told, int) and isinstance(wanted, int) and told != wanted:
            yield Fault(
                f"{each.key}.draft",
                f"the heads {each.draft.name} take states of {told} numbers, {model.name} has {wanted}",
                "name the heads that were trained for this model",
                "heads read the states of the model itself, and fit no other",
                {"draft: hidden_size": str(told), "model: hidden_size": str(wanted)},
            )


def _tokens(case: Case) -> Iterator[Fault]:
    """More draft tokens than heads for multi-token prediction give at a time."""
    for key, method, k, folder in _predicting(case):
        many = _predicts(folder)
        if not many or k is None or k <= many:
            continue
        if k % many:
            yield Fault(
                f"{key}.num_speculative_tokens",
                f"{k} draft tokens are no multiple of the {many} that the model's heads predict",
                f"set it to {many} or {2 * many}",
                "the engine refuses it when it starts",
                {"num_nextn_predict_layers": str(many)},
            )
        elif method == "mtp":
            yield Fault(
                f"{key}.num_speculative_tokens",
                f"{k} draft tokens come from {many} layer{'s' if many > 1 else ''} for multi-token prediction, run "
                f"{k // many} times",
                f"start with {many}, and measure the acceptance of each position",
                "they were trained for the next positions only",
                severity=Severity.WARNING,
            )


def _predicting(case: Case) -> Iterator[tuple[str, str, int | None, ModelFolder]]:
    model = target(case)
    for role, settings in case.profile.roles.items():
        told = case.profile.speculation_of(role)
        if told is not None and told.method is SpeculationMethod.MTP and told.draft is None and model is not None:
            key = "speculation" if settings.speculation is None else f"roles.{role}.speculation"
            yield key, "mtp", told.num_speculative_tokens, model.folder
    for each in drafts(case):
        if each.speculation.method is SpeculationMethod.MTP or "n_predict" in each.draft.folder.config:
            yield each.key, each.speculation.method.value, each.speculation.num_speculative_tokens, each.draft.folder


def _predicts(folder: ModelFolder) -> int:
    keys = ("n_predict", "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    found = (part.get(key) for key in keys for part in (folder.config, folder.text))
    return next((each for each in found if isinstance(each, int) and each > 0), 0)


def _has_mtp(folder: ModelFolder) -> bool:
    return _predicts(folder) > 0


def _all_named(case: Case) -> Iterator[tuple[str, str, str]]:
    for role, settings in case.profile.roles.items():
        told = case.profile.speculation_of(role)
        draft = None if told is None else told.draft_settings
        if told is not None and draft is not None:
            key = "speculation" if settings.speculation is None else f"roles.{role}.speculation"
            yield key, told.method.value, draft.model


_SOURCE = "vLLM 0.32: config/speculative.py"
RULES = (
    Rule("draft/kind", Layer.STATIC, f"{_SOURCE}, and the registry", _kind, needs_model=True),
    Rule("draft/name-chooses-method", Layer.STATIC, f"{_SOURCE}: how the method is detected", _taken_over),
    Rule("draft/heads-fit", Layer.STATIC, "heads read the target's hidden states", _head_fits, needs_model=True),
    Rule("draft/tokens-per-step", Layer.STATIC, f"{_SOURCE}: n_predict", _tokens, needs_model=True),
)
