"""Is the draft of the kind that the method wants?"""

from collections.abc import Iterator
from enum import Enum

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.engine_models import Kind, look_up
from launcher.preflight.checkpoints.loaded import drafts
from launcher.preflight.finding import Case, Fault, Layer, Rule


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


def predicts(folder: ModelFolder) -> int:
    """Tokens that heads for multi-token prediction give at a time; 0 for none."""
    keys = ("n_predict", "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    found = (part.get(key) for key in keys for part in (folder.config, folder.text))
    return next((each for each in found if isinstance(each, int) and each > 0), 0)


def _has_mtp(folder: ModelFolder) -> bool:
    return predicts(folder) > 0


_SOURCE = "vLLM 0.32: config/speculative.py"
RULES = (Rule("draft/kind", Layer.STATIC, f"{_SOURCE}, and the registry", _kind, needs_model=True),)
