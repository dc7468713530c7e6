"""Is the draft long enough, small enough, and quantized as said?"""

from collections.abc import Iterator

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.draft_kind import Draft, kind_of
from launcher.preflight.checkpoints.loaded import Drafting, drafts, target
from launcher.preflight.checkpoints.weight_scheme import method_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_LARGEST = 1 / 3
"""Of the target's weights: with a draft of this size, each accepted token costs as much as it saves."""
_NAMES = {"auto-gptq": "gptq", "auto-awq": "awq", "gptq-marlin": "gptq", "awq-marlin": "awq"}


def _length(case: Case) -> Iterator[Fault]:
    """Requests longer than the draft is made for."""
    model = target(case)
    for each in drafts(case):
        longest = _longest(each.draft.folder)
        asked = each.draft_settings.max_model_len
        if longest is not None and asked is not None and asked > longest:
            yield Fault(
                f"{each.key}.draft.max_model_len",
                f"the draft {each.draft.name} is made for {longest} tokens, not {asked}",
                f"set it to {longest} or less, or remove it",
                "the engine refuses it when it starts",
            )
            continue
        served = case.profile.model.max_model_len or (_longest(model.folder) if model else None)
        if longest is None or served is None or (asked or longest) >= served:
            continue
        is_head = each.speculation.method in {"eagle", "eagle3"}
        yield Fault(
            f"{each.key}.draft",
            f"the draft {each.draft.name} is made for {asked or longest} tokens, requests may have {served}",
            f"choose a longer draft, or set model.max_model_len to {asked or longest}",
            "beyond that its drafts are accepted less and less: it never saw such positions"
            if is_head
            else "while any request of a batch is longer, nothing is drafted for the whole batch",
            {"draft: longest": str(asked or longest), "model.max_model_len": str(served)},
            Severity.WARNING,
        )


def _quantization(case: Case) -> Iterator[Fault]:
    """Another quantization than the draft's checkpoint has."""
    for each in drafts(case):
        asked, found = each.draft_settings.quantization, method_of(each.draft.folder)
        if asked is None or found is None or not each.draft.folder.config:
            continue
        name = asked.lower().replace("_", "-")
        if _NAMES.get(name, name) != found:
            yield Fault(
                f"{each.key}.draft.quantization",
                f"it says {asked}, and the draft {each.draft.name} is stored as {found}",
                "remove it: a draft is read as its own checkpoint says",
                "the engine refuses it when it starts",
                {f"{each.key}.draft.quantization": asked, "config.json": found},
            )


def _small(case: Case) -> Iterator[Fault]:
    """Drafts that cost what they save."""
    model = target(case)
    for each in drafts(case):
        if model is None or kind_of(each.draft.folder) is not Draft.MODEL:
            continue
        mine, others = model.folder.weight_bytes, each.draft.folder.weight_bytes
        if mine and not model.folder.missing and others > mine * _LARGEST:
            yield _too_large(each, model.name, mine, others)


def _too_large(each: Drafting, name: str, mine: int, others: int) -> Fault:
    return Fault(
        f"{each.key}.draft",
        f"the draft {each.draft.name} has {others / mine:.0%} of the weights of {name} "
        f"({others / 2**30:.1f} of {mine / 2**30:.1f} GiB)",
        "choose one of a tenth or less, heads made for the model (eagle3), or ngram",
        "reading the draft's weights for each drafted token takes the time that an accepted token saves",
        {"draft": str(others), "model": str(mine)},
        Severity.WARNING,
    )


def _longest(folder: ModelFolder) -> int | None:
    """Tokens that a model is made for, with what its configuration stretches them to."""
    text = folder.text
    longest = text.get("max_position_embeddings")
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(longest, int) or isinstance(longest, bool):
        return None
    if isinstance(scaling, dict):
        kind, factor, start = (scaling.get(key) for key in ("rope_type", "factor", "original_max_position_embeddings"))
        kind = kind or scaling.get("type")
        if kind in {"linear", "dynamic"} and isinstance(factor, int | float):
            return int(longest * factor)
        if kind == "yarn" and isinstance(factor, int | float) and isinstance(start, int):
            return max(longest, int(start * factor))
    return longest


RULES = (
    Rule("draft/length", Layer.STATIC, "vLLM 0.32: _input_fits_in_drafter", _length, needs_model=True),
    Rule(
        "draft/quantization",
        Layer.STATIC,
        "vLLM: --quantization against the checkpoint",
        _quantization,
        needs_model=True,
    ),
    Rule("draft/size", Layer.STATIC, "a token costs the reading of all weights once", _small, needs_model=True),
)
