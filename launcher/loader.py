"""YAML files, `extends` and --set become one validated profile; every fault is reported at once, with its place."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from launcher.errors import ProfileError
from launcher.profile import Profile
from launcher.profile_faults import faults
from launcher.profile_pools import completed, merged
from launcher.profile_pools import faults as faults_of_pools
from launcher.yaml_document import Document, KeyPath, Value, YamlError, dotted, is_hidden, read, scalar


def shipped_profiles() -> dict[str, Path]:
    """The profiles that come with Duet, by name."""
    packaged = Path(str(resources.files("launcher"))) / "shipped_profiles"
    checkout = Path(__file__).parent.parent / "profiles"
    folder = packaged if packaged.is_dir() else checkout
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


_ELSEWHERE: Mapping[KeyPath, str] = {
    ("proxy", "objectives"): "objectives, beside proxy: they are the whole deployment's",
}
"""Keys that the shape of a part knows and that a profile writes elsewhere."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A profile, and where each of its values comes from."""

    profile: Profile
    document: Document
    """All that was written, with ``extends`` and ``--set`` applied; what is not in it is a default."""


def load(reference: str, overrides: Sequence[str] = ()) -> Profile:
    """The profile with this shipped name or path, with ``key.path=value`` overrides applied.

    Raises :class:`ProfileError` with all faults.
    """
    return resolve(reference, overrides).profile


def resolve(reference: str, overrides: Sequence[str] = ()) -> Resolved:
    """As :func:`load`, with the places."""
    document = read_whole(reference)
    for override in overrides:
        document = _apply(document, override)
    if moved := [
        f"{document.places[old]}: {dotted(old)}: write {new}"
        for old, new in _ELSEWHERE.items()
        if old in document.places
    ]:
        raise ProfileError(moved)
    if unfit := [*_no_texts(document.data, (), document)]:
        raise ProfileError(unfit)
    written = document.data.get("pools")
    data = _without_nulls({key: value for key, value in document.data.items() if key != "pools"})
    profile = _validated(data, document, reference)
    if written is not None:  # of a profile that is faulty itself they would only say the same again
        whole = _without_nulls({**data, "pools": completed(written, data)})
        profile = _validated(whole, document, reference)
    if unfit := [
        f"{document.place_of(path) or reference}: {dotted(path)}: {fault}"
        for path, fault in faults_of_pools(profile, written)
    ]:
        raise ProfileError(unfit)
    return Resolved(profile, document)


def read_whole(reference: str, beside: Path | None = None) -> Document:
    """What is written, with ``extends`` applied and ``null`` kept; raises :class:`ProfileError`.

    ``beside``: the file that a relative path starts from.
    """
    return _read_chain(locate(reference, beside), ())


def _validated(data: dict[str, Value], document: Document, reference: str) -> Profile:
    try:
        return Profile.model_validate_json(json.dumps(data))
    except ValidationError as exc:
        raise ProfileError([*faults(exc.errors(), data, document, reference)]) from exc


def locate(reference: str, beside: Path | None = None) -> Path:
    """The file that a shipped name or a path means; ``beside`` is the file that a relative path starts from."""
    shipped = shipped_profiles()
    if reference in shipped:
        return shipped[reference]
    try:
        path = Path(reference).expanduser()
        path = beside.parent / path if beside else path
        if path.is_file():
            return path
    except (OSError, RuntimeError, ValueError) as exc:  # too long, ~nobody, a zero byte
        raise ProfileError([f"{reference[:80]} names no profile: {exc}"]) from exc
    if path.is_dir():
        raise ProfileError([f"{path} is a folder, not a profile"])
    if "/" in reference or reference.endswith((".yaml", ".yml")):
        raise ProfileError([f"there is no profile file {path}"])
    if (file := path.with_name(f"{path.name}.yaml")).is_file():
        raise ProfileError([f"unknown profile {reference}; did you mean the file {file}?"])
    near = difflib.get_close_matches(reference, shipped, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ProfileError([f"unknown profile {reference}; {hint}Shipped are: {', '.join(shipped)}"])


def _read_chain(path: Path, seen: tuple[Path, ...]) -> Document:
    try:
        document = read(path, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise ProfileError([f"cannot read {path}: {exc}"]) from exc
    except YamlError as exc:
        raise ProfileError(exc.faults) from exc
    if (base := document.data.pop("extends", None)) is None:
        return document
    if not isinstance(base, str):
        raise ProfileError([f"{document.places[('extends',)]}: extends: name one profile, not {base!r}"])
    place = document.places[("extends",)]
    try:
        base_path = locate(base, beside=path)
    except ProfileError as exc:
        raise ProfileError([f"{place}: extends: {exc}"]) from exc
    if base_path.resolve() in (chain := (*seen, path.resolve())):
        names = " -> ".join(each.name for each in (*chain, base_path))
        raise ProfileError([f"{place}: extends goes round in a circle: {names}"])
    return _merge(_read_chain(base_path, chain), document)


def _merge(base: Document, over: Document) -> Document:
    """Mappings merge key by key; anything else of ``over`` replaces what ``base`` has."""
    return Document(merged(base.data, over.data), base.places | over.places)


def _without_nulls(data: dict[str, Value]) -> dict[str, Value]:
    """A null takes away what a base says, so that the default holds again."""
    return {
        key: _without_nulls(value) if isinstance(value, dict) else value
        for key, value in data.items()
        if value is not None
    }


_DEEPEST = 32
"""Keys in one another; a profile has five."""


def _apply(document: Document, override: str) -> Document:
    name, equals, text = override.partition("=")
    keys = tuple(part.strip() for part in name.split("."))
    if not equals or not all(keys) or len(keys) > _DEEPEST:
        raise ProfileError([f"--set {override[:200]}: write it as key.path=value, e.g. proxy.port=8001"])
    data: dict[str, Value] = {keys[-1]: _override_value(name if is_hidden(keys) else override, text)}
    for key in reversed(keys[:-1]):
        data = {key: data}
    said = f"--set {name if is_hidden(keys) else override}"
    places: dict[KeyPath, str] = {keys[: depth + 1]: said for depth in range(len(keys))}
    for depth in range(1, len(keys)):  # a parent that exists keeps its place, for messages about its other keys
        if keys[:depth] in document.places:
            del places[keys[:depth]]
    return _merge(document, Document(data, places))


def _override_value(override: str, text: str) -> Value:
    if not text.startswith(("[", "{", '"', "'")):
        return scalar(text)
    try:
        data = read(Path("--set"), f"value: {text}").data
    except YamlError as exc:
        raise ProfileError([f"--set {override}: {exc.faults[0].removeprefix('--set:1: ')}"]) from exc
    if len(data) > 1:
        raise ProfileError([f"--set {override}: it holds more than one value"])
    return data["value"]


_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""A zero character, or half a character (a surrogate)."""


def _no_texts(value: Value, path: KeyPath, document: Document) -> Iterator[str]:
    """What cannot be passed to a program."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _no_texts(key, (*path, key), document)
            yield from _no_texts(item, (*path, key), document)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _no_texts(item, (*path, number), document)
    elif isinstance(value, str) and _NO_TEXT.search(value):
        what = "a text with a zero or half a character cannot be passed to a program"
        yield f"{document.place_of(path)}: {dotted(path)}: {what}"
