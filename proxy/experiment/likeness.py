"""Decision: whether a copy was answered with the same text; told of whole answers without chance only."""

import json

from proxy.completion import Completion
from proxy.endpoint import Endpoint

_TEXTS = {Endpoint.COMPLETIONS: "text", Endpoint.CHAT: "message"}


def is_greedy(completion: Completion) -> bool:
    """Whether two engines with the same model should answer the same, but for rounding."""
    return completion.endpoint in _TEXTS and completion.document.get("temperature") == 0


def same_texts(endpoint: Endpoint, first: bytes, second: bytes) -> bool:
    """Whether two answers of status 200 have the same texts and tool calls."""
    return _texts(endpoint, first) == _texts(endpoint, second)


def _texts(endpoint: Endpoint, body: bytes) -> list[object]:
    try:
        choices = json.loads(body)["choices"]
        return [_said(choice[_TEXTS[endpoint]]) for choice in choices]
    except (ValueError, KeyError, TypeError, RecursionError):
        return [body]


def _said(text: object) -> object:
    """A message's tool calls have ids of their own in every answer."""
    if not isinstance(text, dict):
        return text
    calls = text.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return text.get("content"), functions
