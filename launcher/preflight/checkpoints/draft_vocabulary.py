"""Do draft and target mean the same by the same token?"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.draft_kind import Draft, kind_of
from launcher.preflight.checkpoints.loaded import Drafting, drafts, target, tokenizer
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_SHOWN = 3
_FEW = 0.01
"""Of a vocabulary; where fewer tokens differ, drafts are still accepted."""


def _sizes(case: Case) -> Iterator[Fault]:
    """Vocabularies of unlike sizes."""
    model = target(case)
    for each in drafts(case) if model is not None else ():
        mine, others = _size(model.folder) if model else None, _size(each.draft.folder)
        if mine is None or others is None or mine == others or each.speculation.heterogeneous_vocab:
            continue
        values = {"model: vocab_size": str(mine), "draft: vocab_size": str(others)}
        if kind_of(each.draft.folder) in {Draft.MODEL, None} and each.speculation.method == "draft_model":
            yield Fault(
                f"{each.key}.draft",
                f"the draft {each.draft.name} has {others} tokens, {model.name if model else ''} has {mine}",
                f"choose a draft of the same family, or set {each.key}.heterogeneous_vocab: true (slower)",
                "the engine refuses it when it starts",
                values,
            )
        elif each.speculation.method in {"eagle", "eagle3", "dflash"} and not _maps(each.draft.folder):
            yield Fault(
                f"{each.key}.draft",
                f"the heads {each.draft.name} are for {others} tokens, {model.name if model else ''} has {mine}",
                "name the heads that were trained for this model",
                "they would be given tokens that they have no embedding for",
                values,
            )


def _tokens(case: Case) -> Iterator[Fault]:
    """The same numbers for other texts."""
    model = target(case)
    if model is None:
        return
    source = tokenizer(case) or model
    for each in drafts(case):
        if each.speculation.heterogeneous_vocab or each.speculation.method != "draft_model":
            continue  # heads have no tokenizer of their own
        if _size(each.draft.folder) == _size(model.folder) and (fault := _compared(case, each, source.folder.path)):
            yield fault


def _compared(case: Case, each: Drafting, path: Path) -> Fault | None:
    other = each.draft.folder.path
    if _same_file(path / "tokenizer.json", other / "tokenizer.json"):
        return None
    mine, theirs = case.reader.tokenizer(path), case.reader.tokenizer(other)
    if mine is None or theirs is None or mine.tokens == theirs.tokens:
        return None
    differing = _differences(mine.tokens, theirs.tokens)
    share = len(differing) / max(1, len(mine.tokens))
    shown = "; ".join(
        f"{text!r}: {_number(mine.tokens, text)} and {_number(theirs.tokens, text)}" for text in differing[:_SHOWN]
    )
    is_special = all(text in mine.added or text in theirs.added for text in differing)
    return Fault(
        f"{each.key}.draft",
        f"{len(differing)} tokens of {each.draft.name} have other numbers than the model's ({shown})",
        "choose a draft of the same family"
        + ("" if is_special else f", or set {each.key}.heterogeneous_vocab: true (slower)"),
        "drafts with such tokens are never accepted" if share < _FEW else "nearly no draft is accepted",
        {"differing tokens": str(len(differing))},
        Severity.WARNING if share < _FEW else Severity.ERROR,
    )


def _differences(mine: Mapping[str, int], theirs: Mapping[str, int]) -> list[str]:
    """Texts with unlike numbers, the lowest number first."""
    texts = {text for text, _ in mine.items() ^ theirs.items()}
    return sorted(texts, key=lambda text: min(mine.get(text, 2**60), theirs.get(text, 2**60)))


def _number(tokens: Mapping[str, int], text: str) -> str:
    return str(tokens[text]) if text in tokens else "none"


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _size(folder: ModelFolder) -> int | None:
    size = folder.text.get("vocab_size")
    return size if isinstance(size, int) else None


def _maps(folder: ModelFolder) -> bool:
    """Whether the heads draft from a part of the target's vocabulary, and say which."""
    return any(each.name.rpartition(".")[2] in {"d2t", "t2d"} for each in folder.tensors)


RULES = (
    Rule(
        "draft/vocabulary-size",
        Layer.STATIC,
        "vLLM 0.32: verify_equal_vocab_size_if_draft_model",
        _sizes,
        needs_model=True,
    ),
    Rule("draft/vocabulary", Layer.STATIC, "vLLM 0.32 gives the draft the target's tokens", _tokens, needs_model=True),
)
