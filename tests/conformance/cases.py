"""Requests, and what must hold of their answers, whoever serves them: the proxy before a pair, or one engine alone."""

import json
from dataclasses import dataclass, field
from typing import Any

MODEL = "tiny"
"""The name of the model that every target serves."""
JSON = {"content-type": "application/json"}
TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"


@dataclass(frozen=True)
class Case:
    """One request, and what is known of its answer."""

    path: str
    body: dict[str, Any] | bytes | None = None
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=lambda: JSON)
    status: int = 200
    finish: tuple[str, ...] = ("length",)
    """The reasons of which one is told for each choice."""
    tokens: int | None = None
    """Generated tokens of all choices together, where it is known."""
    choices: int = 1
    param: str | None = None
    """What an error names as the parameter at fault; ``None`` for anything."""
    allow: str | None = None
    """The header of this name."""
    keys: tuple[str, ...] = ()
    """Keys of a document that is neither a completion nor an error."""

    @property
    def content(self) -> bytes | None:
        """The body's bytes."""
        return json.dumps(self.body).encode() if isinstance(self.body, dict) else self.body

    @property
    def wishes(self) -> dict[str, Any]:
        """The body's document; empty when it is none."""
        return self.body if isinstance(self.body, dict) else {}


_COMMON = {"model": MODEL, "max_tokens": 6, "temperature": 0, "ignore_eos": True}
_TEXT = _COMMON | {"prompt": "one two three"}
_CHAT = _COMMON | {"messages": [{"role": "user", "content": "one two three"}]}
_RESPONSE = {"model": MODEL, "input": "one two three", "max_output_tokens": 6, "temperature": 0, "ignore_eos": True}
_MESSAGE = {"model": MODEL, "max_tokens": 6, "temperature": 0, "messages": _CHAT["messages"]}
_STREAM = {"stream": True}
_USAGE = {"stream": True, "stream_options": {"include_usage": True}}
_RUNNING = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
_NO_USAGE = {"stream": True, "stream_options": {"include_usage": False}}
_TWO = {"n": 2, "temperature": 1}
_STOP = {"stop": ["e", "a", "o", "t"]}
_ENDS = ("max_tokens", "end_turn")

CASES = {
    "text": Case(TEXT, _TEXT, tokens=6),
    "text, streamed": Case(TEXT, _TEXT | _STREAM, tokens=6),
    "text, streamed with usage": Case(TEXT, _TEXT | _USAGE, tokens=6),
    "text, streamed with running usage": Case(TEXT, _TEXT | _RUNNING, tokens=6),
    "text, streamed with usage refused": Case(TEXT, _TEXT | _NO_USAGE, tokens=6),
    "text of token numbers": Case(TEXT, _TEXT | {"prompt": [100, 101, 102]}, tokens=6),
    "text of two prompts": Case(TEXT, _TEXT | {"prompt": ["one", "two"]}, tokens=12, choices=2),
    "text of two prompts, streamed": Case(TEXT, _TEXT | _USAGE | {"prompt": ["one", "two"]}, tokens=12, choices=2),
    "text, two choices": Case(TEXT, _TEXT | _TWO, tokens=12, choices=2),
    "text, two choices, streamed": Case(TEXT, _TEXT | _TWO | _USAGE, tokens=12, choices=2),
    "text with echo": Case(TEXT, _TEXT | {"echo": True}, tokens=6),
    "text with a stop": Case(TEXT, _TEXT | _STOP | {"max_tokens": 60}, finish=("stop",)),
    "text with a stop, streamed": Case(TEXT, _TEXT | _STOP | _STREAM | {"max_tokens": 60}, finish=("stop",)),
    "text with log-probabilities": Case(TEXT, _TEXT | {"logprobs": 1}, tokens=6),
    "text of one token": Case(TEXT, _TEXT | {"max_tokens": 1}, tokens=1),
    "text with at least three tokens": Case(TEXT, _TEXT | {"min_tokens": 3}, tokens=6),
    "text without a limit": Case(TEXT, {"model": MODEL, "prompt": "one", "ignore_eos": True}, tokens=16),
    "chat": Case(CHAT, _CHAT, tokens=6),
    "chat, streamed": Case(CHAT, _CHAT | _STREAM, tokens=6),
    "chat, streamed with usage": Case(CHAT, _CHAT | _USAGE, tokens=6),
    "chat, streamed with running usage": Case(CHAT, _CHAT | _RUNNING, tokens=6),
    "chat, streamed with usage refused": Case(CHAT, _CHAT | _NO_USAGE, tokens=6),
    "chat by its newer limit": Case(CHAT, _CHAT | {"max_completion_tokens": 4}, tokens=4),
    "chat, three choices": Case(CHAT, _CHAT | _TWO | {"n": 3}, tokens=18, choices=3),
    "chat, three choices, streamed": Case(CHAT, _CHAT | _TWO | _USAGE | {"n": 3}, tokens=18, choices=3),
    "chat with a stop": Case(CHAT, _CHAT | _STOP | {"max_tokens": 60}, finish=("stop",)),
    "chat with log-probabilities": Case(CHAT, _CHAT | {"logprobs": True, "top_logprobs": 1}, tokens=6),
    "chat without a model": Case(CHAT, {key: value for key, value in _CHAT.items() if key != "model"}, tokens=6),
    "chat with unknown keys": Case(CHAT, _CHAT | {"zz": {"a": [1]}}, tokens=6),
    "response": Case(RESPONSES, _RESPONSE, tokens=6),
    "response, streamed": Case(RESPONSES, _RESPONSE | _STREAM, tokens=6),
    "message": Case(MESSAGES, _MESSAGE, finish=_ENDS),
    "message, streamed": Case(MESSAGES, _MESSAGE | _STREAM, finish=_ENDS),
    "text, unknown model": Case(TEXT, _TEXT | {"model": "another"}, status=404, param="model"),
    "chat, unknown model, streamed": Case(CHAT, _CHAT | _STREAM | {"model": "another"}, status=404, param="model"),
    "response, unknown model": Case(RESPONSES, _RESPONSE | {"model": "another"}, status=404, param="model"),
    "message, unknown model": Case(MESSAGES, _MESSAGE | {"model": "another"}, status=404),
    "text, bad JSON": Case(TEXT, b"{nope", status=400),
    "chat, half a JSON": Case(CHAT, b'{"model": ', status=400),
    "response, an array": Case(RESPONSES, b"[1]", status=400),
    "message, no body": Case(MESSAGES, b"", status=400),
    "text, another content type": Case(TEXT, b'{"prompt": "x"}', headers={"content-type": "text/plain"}, status=400),
    "chat, no content type": Case(CHAT, json.dumps(_CHAT).encode(), headers={}, status=400),
    "chat, messages as text": Case(CHAT, _CHAT | {"messages": "one"}, status=400),
    "chat, a number as text": Case(CHAT, _CHAT | {"max_tokens": "x"}, status=400),
    "chat, no messages": Case(CHAT, {"model": MODEL}, status=400),
    "text, no prompt": Case(TEXT, {"model": MODEL}, status=400),
    "text, a temperature below zero": Case(TEXT, _TEXT | {"temperature": -1}, status=400, param="temperature"),
    "text, too many tokens": Case(TEXT, _TEXT | {"max_tokens": 100_000}, status=400),
    "chat, too many tokens, streamed": Case(CHAT, _CHAT | _STREAM | {"max_tokens": 100_000}, status=400),
    "message, too many tokens": Case(MESSAGES, _MESSAGE | {"max_tokens": 100_000}, status=400),
    "text, no tokens": Case(TEXT, _TEXT | {"max_tokens": 0}, status=400),
    "text, more tokens at least than at most": Case(TEXT, _TEXT | {"min_tokens": 9}, status=400),
    "text, too many log-probabilities": Case(TEXT, _TEXT | {"logprobs": 50}, status=400),
    "text, a prompt that is too long": Case(TEXT, _TEXT | {"prompt": "a " * 5000}, status=400),
    "chat, greedy choices": Case(CHAT, _CHAT | {"n": 2}, status=400),
    "chat, stream options without a stream": Case(
        CHAT, _CHAT | {"stream_options": {"include_usage": True}}, status=400, param="stream_options"
    ),
    "response, to one that is not there": Case(RESPONSES, _RESPONSE | {"previous_response_id": "resp_x"}, status=404),
    "a wrong method": Case(CHAT, None, "GET", status=405, allow="POST"),
    "another wrong method": Case(TEXT, {}, "PUT", status=405, allow="POST"),
    "a head": Case(CHAT, None, "HEAD", status=405, allow="POST"),
    "options": Case(MESSAGES, None, "OPTIONS", status=405, allow="POST"),
    "a post to a document": Case("/v1/models", {}, status=405, allow="GET"),
    "an unknown route": Case("/v1/nothing", None, "GET", status=404),
    "a post to an unknown route": Case("/v1/nothing", {}, status=404),
    "models": Case("/v1/models", None, "GET", keys=("object", "data")),
    "tokenize": Case("/tokenize", {"model": MODEL, "prompt": "one"}, keys=("count", "max_model_len", "tokens")),
    "version": Case("/version", None, "GET", keys=("version",)),
    "health": Case("/health", None, "GET"),
}
