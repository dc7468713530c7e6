"""Are folders written where folders belong, and hub ids where hub ids do?"""

from collections.abc import Iterator
from pathlib import Path

from launcher.errors import PlanError
from launcher.paths import absolute, is_hub_id, is_path
from launcher.preflight.checkpoints.loaded import named
from launcher.preflight.finding import Case, Fault, Layer, Rule


def _id(case: Case) -> Iterator[Fault]:
    """``model.id`` that is no hub id."""
    given = case.profile.model.id
    if given is None:
        return
    if is_path(given) or Path(given).is_dir():
        where = given if is_path(given) else f"./{given}"
        yield Fault(
            "model.id",
            f"{given} is a folder, not a hub id",
            f"write model.path: {where}, and remove model.id",
            "engines would look for it on the Hugging Face hub, or serve it under a name that is a path",
        )
    elif not is_hub_id(given):
        yield Fault("model.id", f"{given!r} is no hub id", "write it as ORGANISATION/NAME, as the hub's page shows it")


def _named(case: Case) -> Iterator[Fault]:
    """Tokenizers, drafts and adapters that are written as paths and are not there, or the other way round."""
    for key, where in named(case):
        try:
            folder = Path(absolute(where, key))
        except PlanError:
            continue
        if is_path(where) and not folder.is_dir():
            what = "is a file, not a folder" if folder.exists() else "does not exist"
            yield Fault(key, f"{folder} {what}", "name the folder; a hub id is written as ORGANISATION/NAME")
        elif not is_path(where) and folder.is_dir():
            yield Fault(
                key,
                f"{where} is written as a hub id, and is a folder here ({folder})",
                f"write ./{where}, or the whole path",
                "engines run in another folder, and would look for it on the Hugging Face hub",
            )
        elif not is_path(where) and not is_hub_id(where):
            yield Fault(key, f"{where!r} is neither a path nor a hub id", "write /a/path or ORGANISATION/NAME")


_SOURCE = "huggingface_hub: what a repository may be called"
RULES = (
    Rule("model/id-is-an-id", Layer.STATIC, _SOURCE, _id),
    Rule("model/named-folders", Layer.STATIC, _SOURCE, _named),
)
