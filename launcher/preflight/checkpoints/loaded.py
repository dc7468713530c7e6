"""Which models a profile's engines load, as far as they are on this machine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from launcher.errors import PlanError
from launcher.inventory import Checkpoint
from launcher.model_folder import ModelFolder
from launcher.paths import folder_or_id
from launcher.preflight.finding import Case
from launcher.profile import Draft, RoleSettings, Speculation
from launcher.weights import folder_of
from proxy.topology import Role


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its folder."""

    key: str
    """Of the profile, which names it."""
    what: str
    """``the model``, ``the draft``..."""
    name: str
    """Its hub id or path."""
    folder: ModelFolder


@dataclass(frozen=True, slots=True)
class Drafting:
    """A role that speculates with a draft whose folder is here."""

    role: Role
    settings: RoleSettings
    speculation: Speculation
    key: str
    """Of its speculation."""
    draft_settings: Draft
    draft: Loaded


def target(case: Case) -> Loaded | None:
    """The model itself; ``None`` when it is not on this machine."""
    model = case.profile.model
    source = next(name for name in ("id", "path", "bundled") if getattr(model, name) is not None)
    return _loaded(case, f"model.{source}", "the model", case.plan.model, model.revision)


def tokenizer(case: Case) -> Loaded | None:
    """Another tokenizer than the model's own, where there is one."""
    model = case.profile.model
    if model.tokenizer is None:
        return None
    return _loaded(case, "model.tokenizer", "the tokenizer", model.tokenizer, model.tokenizer_revision)


def drafts(case: Case) -> Iterator[Drafting]:
    """Of each role that has one here."""
    for role, settings in case.profile.roles.items():
        speculation = case.profile.speculation_of(role)
        told = None if speculation is None else speculation.draft_settings
        if speculation is None or told is None:
            continue
        key = "speculation" if settings.speculation is None else f"roles.{role}.speculation"
        if (draft := _loaded(case, f"{key}.draft", "the draft", told.model, told.revision)) is not None:
            yield Drafting(role, settings, speculation, key, told, draft)


def models(case: Case) -> Iterator[Loaded]:
    """The model, and its drafts."""
    if (model := target(case)) is not None:
        yield model
    yield from (each.draft for each in drafts(case))


def adapters(case: Case) -> Iterator[Loaded]:
    """All that are here."""
    lora = case.profile.model.lora
    for name, where in ({} if lora is None else lora.adapters).items():
        if (found := _loaded(case, f"model.lora.adapters.{name}", "the adapter", where, None)) is not None:
            yield found


def named(case: Case) -> Iterator[tuple[str, str]]:
    """The profile's keys that take a hub id or a folder, with what they say."""
    model = case.profile.model
    if model.tokenizer is not None:
        yield "model.tokenizer", model.tokenizer
    for name, where in ({} if model.lora is None else model.lora.adapters).items():
        yield f"model.lora.adapters.{name}", where
    for role, settings in case.profile.roles.items():
        speculation = case.profile.speculation_of(role)
        told = None if speculation is None else speculation.draft_settings
        if told is not None:
            yield "speculation.draft" if settings.speculation is None else f"roles.{role}.speculation.draft", told.model


def environment(case: Case) -> Mapping[str, str]:
    """What tells engines where hub models are kept."""
    return {**case.environ, **case.profile.env}


def _loaded(case: Case, key: str, what: str, where: str, revision: str | None) -> Loaded | None:
    try:
        folder = folder_of(Checkpoint(folder_or_id(where, key), revision), environment(case))
    except PlanError:  # there is no such home: planning tells it
        folder = None
    return None if folder is None else Loaded(key, what, where, case.reader.folder(folder))
