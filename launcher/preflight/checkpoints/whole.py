"""Are all files of all models there, and whole?"""

from collections.abc import Iterator

from launcher.preflight.checkpoints.loaded import Loaded, adapters, models, target, tokenizer
from launcher.preflight.finding import Case, Fault, Layer, Rule

_SHOWN = 3


def _shards(case: Case) -> Iterator[Fault]:
    """Files that an index names and that are not there: a download that did not finish."""
    for model in models(case):
        if missing := model.folder.missing:
            names = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if missing[_SHOWN:] else "")
            yield Fault(
                model.key,
                f"{len(missing)} weight files that {model.what}'s index names are not in {model.folder.path}: {names}",
                "fetch or copy the model again: that did not finish",
                "the engine would end while it loads",
            )


def _readable(case: Case) -> Iterator[Fault]:
    """What is cut off, is no JSON, contradicts itself."""
    model = target(case)
    for each in _all(case):
        own_rule = {f"{each.folder.path}/config.json"} if each == model else set()  # model/files-there tells of it
        for fault in each.folder.faults:
            if fault.split(" ")[0] not in own_rule:
                yield Fault(each.key, fault, f"fetch or copy {each.what} again", "the engine would end while it loads")


def _described(case: Case) -> Iterator[Fault]:
    """A draft without a configuration or without weights; ``model/files-there`` judges the model itself."""
    main = target(case)
    for each in models(case):
        folder = each.folder
        if each == main or folder.missing or not folder.names:
            continue
        if "config.json" not in folder.names:
            yield Fault(
                each.key, f"{each.name} is no model folder, it has no config.json", "name the folder of the draft model"
            )
        elif not folder.weight_files:
            yield Fault(each.key, f"{each.name} has no weights", "fetch the draft again: that did not finish")


def _all(case: Case) -> Iterator[Loaded]:
    yield from models(case)
    yield from adapters(case)
    if (own := tokenizer(case)) is not None:
        yield own


_LAYOUT = "Hugging Face's folder layout"
RULES = (
    Rule("model/shards", Layer.STATIC, _LAYOUT, _shards, needs_model=True),
    Rule("model/readable", Layer.STATIC, "the headers of safetensors files", _readable, needs_model=True),
    Rule("draft/files-there", Layer.STATIC, _LAYOUT, _described, needs_model=True),
)
