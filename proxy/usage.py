"""Decision: the tokens of an answer, as it tells them itself."""

import json
from typing import NamedTuple

_KEY = b'"usage":'
_MOST = 4096
"""Bytes of a usage object; nothing longer is read."""
_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_DECODER = json.JSONDecoder()


class Usage(NamedTuple):
    """Tokens."""

    prompt: int
    completion: int


def usage_of(text: bytes) -> Usage | None:
    """From a whole answer, or from the last events of a stream; ``None`` when it does not tell.

    Only the last usage object is parsed. Quotes inside a text are escaped, so no text looks like one.
    """
    at = text.rfind(_KEY)
    if at < 0:
        return None
    try:
        found, _ = _DECODER.raw_decode(text[at + len(_KEY) : at + _MOST].decode(errors="replace").lstrip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    prompt, completion = _count(found, _PROMPT), _count(found, _COMPLETION)
    return None if prompt is None or completion is None else Usage(prompt, completion)


def _count(usage: dict[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
