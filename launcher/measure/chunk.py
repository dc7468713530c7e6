"""Decision: what one event of a stream says, whichever route it is of."""

import json
from typing import Any, NamedTuple


class Chunk(NamedTuple):
    """One event."""

    text: str = ""
    """Of the answer, thoughts and calls of tools included."""
    finish: str | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None
    """Generated, where the event has the usage."""
    error: str | None = None
    """What the server says in place of more text."""


def chunk(data: str) -> Chunk:
    """Of an event's data; raises :class:`ValueError` when it is none of OpenAI's API."""
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("an event is no object")
    if "error" in document:
        return Chunk(error=_message(document["error"]))
    usage = document.get("usage") or {}
    choices = document.get("choices")
    if not isinstance(choices, list) or not isinstance(usage, dict):
        raise ValueError("an event has no choices")
    text, finish = "", None
    for choice in choices:
        delta = choice.get("delta") or {}
        text += choice.get("text") or _said(delta)
        finish = choice.get("finish_reason") or finish
    return Chunk(text, finish, usage.get("prompt_tokens"), usage.get("completion_tokens"))


def _said(delta: dict[str, Any]) -> str:
    """Of a chat; servers call thoughts by either name."""
    parts = [delta.get(name) for name in ("reasoning", "reasoning_content", "content")]
    calls = [(call.get("function") or {}) for call in delta.get("tool_calls") or ()]
    parts += [call.get(name) for call in calls for name in ("name", "arguments")]
    return "".join(filter(None, parts))


def _message(error: object) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(said).split())[:200]
