"""Decision: the tokens of an answer, drafted ones too, as it tells them itself."""

import json
from typing import NamedTuple

_KEY = b'"usage":'
_DRAFTED_KEY = b'"speculative_decoding":'
_MOST = 4096
"""Bytes of a usage object; nothing longer is read."""
_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_DECODER = json.JSONDecoder()


class Usage(NamedTuple):
    """Tokens."""

    prompt: int
    completion: int


class Drafted(NamedTuple):
    """Tokens that speculation drafted for an answer, and those that the model accepted."""

    drafted: int
    accepted: int


def usage_of(text: bytes) -> Usage | None:
    """From a whole answer, or from the last events of a stream; ``None`` when it does not tell."""
    found = _last(text, _KEY)
    prompt, completion = _count(found, _PROMPT), _count(found, _COMPLETION)
    return None if prompt is None or completion is None else Usage(prompt, completion)


def drafted_of(text: bytes) -> Drafted | None:
    """The same, of engines that tell it (``--per-request-spec-decode-metrics``)."""
    found = _last(text, _DRAFTED_KEY)
    drafted, accepted = _count(found, ("num_draft_tokens",)), _count(found, ("num_accepted_draft_tokens",))
    return None if drafted is None or accepted is None or accepted > drafted else Drafted(drafted, accepted)


def _last(text: bytes, key: bytes) -> dict[str, object]:
    """The last object of this name; empty when there is none. Quotes inside a text are escaped: none looks like it."""
    at = text.rfind(key)
    if at < 0:
        return {}
    try:
        found, _ = _DECODER.raw_decode(text[at + len(key) : at + _MOST].decode(errors="replace").lstrip())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _count(usage: dict[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
