"""Decision: a profile's text with other speculation; comments, order and quotes stay."""

from collections.abc import Mapping
from io import StringIO
from typing import Any

from launcher.yaml_document import Value

_KEY = "speculation"


def with_speculation(
    text: str, what: Mapping[str, Value] | None, *, below: Mapping[str, Value] | None, roles: Mapping[str, bool]
) -> str:
    """``below``: what the profile that it extends says of speculation; ``None``: nothing.

    Mappings merge with what is extended, so keys of it that do not hold any more are taken away by ``null``.
    ``roles``: those that have speculation of their own -> whether a profile that is extended says so, which needs a
    ``null`` here; else it is removed.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.util import load_yaml_guess_indent

    if what is None and below is None and not roles and not _says(text):
        return text
    _, indent, offset = load_yaml_guess_indent(text)
    yaml = YAML()
    yaml.representer.add_representer(type(None), _null)
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=indent or 2, sequence=(offset or 0) + 2, offset=offset or 0)
    data = yaml.load(text)
    new = _mapping(what, below)
    if _KEY in data:
        data[_KEY] = _kept_comments(data, new)
    elif what is not None or below is not None:
        data.insert(_before(data), _KEY, new)
    for role, is_below in roles.items():
        _clear(data, role, is_below)
    out = StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def extending(base: str, description: str, what: Mapping[str, Value] | None, below: Mapping[str, Value] | None) -> str:
    """A profile that is another one but for its speculation. Raises nothing: all names are quoted as needed."""
    from ruamel.yaml import YAML

    yaml, out = YAML(), StringIO()
    yaml.width = 10_000
    yaml.dump({"description": description, "extends": base}, out)
    return with_speculation(out.getvalue(), what, below=below or {}, roles={})


def _says(text: str) -> bool:
    return any(line.startswith(_KEY) for line in text.splitlines())


def _null(representer: Any, _: None) -> Any:  # noqa: ANN401
    """As people write it: an empty value looks forgotten."""
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


def _mapping(what: Mapping[str, Value] | None, below: Mapping[str, Value] | None) -> Any:  # noqa: ANN401
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if what is None:
        return None
    found = CommentedMap(what)
    if isinstance(schedule := what.get("schedule"), list):
        found["schedule"] = CommentedSeq([CommentedSeq(each) for each in schedule if isinstance(each, list)])
        found["schedule"].fa.set_flow_style()
    for key in below or ():
        if key not in what:
            found[key] = None
    return found


def _kept_comments(data: Any, new: Any) -> Any:  # noqa: ANN401
    """Keys that stay keep their comments; what comes after the mapping does, too."""
    old = data[_KEY]
    if not hasattr(old, "ca") or not hasattr(new, "ca") or not old:
        return new
    after = _take_after(old, [*old][-1])
    for key in [key for key in old if key not in new]:
        del old[key]
    for key, value in new.items():
        old[key] = value
    if after:
        _put_after(old, [*old][-1], after)
    return old


def _take_after(mapping: Any, key: str) -> str:  # noqa: ANN401
    """Blank lines and comments below the line of a key, which ruamel.yaml keeps with it; they are taken away."""
    tokens = mapping.ca.items.get(key)
    if not tokens or tokens[2] is None:
        return ""
    line, end, rest = tokens[2].value.partition("\n")
    tokens[2].value = line + end
    return str(rest)


def _put_after(mapping: Any, key: str, text: str) -> None:  # noqa: ANN401
    from ruamel.yaml.error import CommentMark
    from ruamel.yaml.tokens import CommentToken

    tokens = mapping.ca.items.setdefault(key, [None, None, None, None])
    if tokens[2] is None:
        tokens[2] = CommentToken("\n", CommentMark(0), None)
    tokens[2].value += text


def _before(data: Any) -> int:  # noqa: ANN401
    """Where the key is inserted: before the roles, as in the shipped profiles, else at the end."""
    keys = [*data]
    return keys.index("roles") if "roles" in keys else len(keys)


def _clear(data: Any, role: str, is_below: bool) -> None:  # noqa: ANN401
    mine = (data.get("roles") or {}).get(role)
    if is_below:
        if mine is None:
            data.setdefault("roles", {})[role] = {_KEY: None}
        else:
            mine[_KEY] = None
    elif isinstance(mine, dict):
        mine.pop(_KEY, None)
