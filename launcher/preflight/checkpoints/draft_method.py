"""Does the engine take the method that is meant, with as many tokens, and do heads fit the model?"""

from collections.abc import Iterator

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.draft_kind import Draft, kind_of, predicts
from launcher.preflight.checkpoints.loaded import drafts, target
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import SpeculationMethod

_TAKEN_OVER = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
"""Parts of a draft's name by which the engine chooses the method, whatever it was told, in its order."""
_KEEPS_ITS_METHOD = frozenset({"eagle", "eagle3", "dflash", "dspark"})


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
        many = predicts(folder)
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


def _all_named(case: Case) -> Iterator[tuple[str, str, str]]:
    for role, settings in case.profile.roles.items():
        told = case.profile.speculation_of(role)
        draft = None if told is None else told.draft_settings
        if told is not None and draft is not None:
            key = "speculation" if settings.speculation is None else f"roles.{role}.speculation"
            yield key, told.method.value, draft.model


_SOURCE = "vLLM 0.32: config/speculative.py"
RULES = (
    Rule("draft/name-chooses-method", Layer.STATIC, f"{_SOURCE}: how the method is detected", _taken_over),
    Rule("draft/heads-fit", Layer.STATIC, "heads read the target's hidden states", _head_fits, needs_model=True),
    Rule("draft/tokens-per-step", Layer.STATIC, f"{_SOURCE}: n_predict", _tokens, needs_model=True),
)
