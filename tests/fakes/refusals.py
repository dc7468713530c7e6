"""Which requests vLLM 0.32 refuses, in its order: content type, JSON, fields, model, sampling, length."""

import json
from typing import Any

from tests.fakes import messages, responses
from tests.fakes.answers import MAX_MODEL_LEN, Kind, error
from tests.fakes.completions import limit_of, prompts_of

_TYPES = {"messages": list, "max_tokens": int, "max_completion_tokens": int, "n": int, "kv_transfer_params": dict}
_NEEDED = {
    Kind.TEXT: (),
    Kind.CHAT: ("messages",),
    Kind.RESPONSE: ("input",),
    Kind.MESSAGE: ("model", "messages", "max_tokens"),
}
_CHARACTERS_PER_TOKEN = 16
_MOST_LOGPROBS = 20


class Refused(Exception):
    """Carries the status and the body of the refusal."""

    def __init__(self, message: str, param: str | None = None, kind: str = "BadRequestError", status: int = 400):
        super().__init__(message)
        self.status = status
        self.body = json.dumps(error(message, kind, param, status)).encode()


def accepted(raw: bytes, content_type: str | None, kind: Kind, model: str) -> dict[str, Any]:
    """The body's document; raises :class:`Refused`."""
    body = _document(raw, content_type)
    _check_fields(body, kind)
    try:
        _check_meaning(body, kind, model)
    except Refused as refused:
        if kind is Kind.MESSAGE:
            refused.body = messages.refusal(refused.body)
        raise
    return body


def completion_of(body: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The request as one for a chat, or a text's as it is."""
    match kind:
        case Kind.RESPONSE:
            return responses.as_chat(body)
        case Kind.MESSAGE:
            return messages.as_chat(body)
        case _:
            return body


def _check_meaning(body: dict[str, Any], kind: Kind, model: str) -> None:
    if (body.get("model") or model) != model:
        raise Refused(
            f"The model `{body['model']}` does not exist. Valid aliases: {model}.", "model", "NotFoundError", 404
        )
    if kind is Kind.RESPONSE and body.get("previous_response_id"):
        message = f"Response with id '{body['previous_response_id']}' not found."
        raise Refused(message, "response_id", "invalid_request_error", 404)
    completion = completion_of(body, kind)
    _check_sampling(completion, "max_output_tokens" if kind is Kind.RESPONSE else "max_tokens")
    _check_length(completion, chat=kind is not Kind.TEXT)


def _invalid(kind: str, where: str, message: str) -> Refused:
    text = f"1 validation error:\n  {{'type': '{kind}', 'loc': '{where}', 'msg': '{message}'}}"
    return Refused(text, where, "Bad Request")


def _document(raw: bytes, content_type: str | None) -> dict[str, Any]:
    if (content_type or "").partition(";")[0].strip() != "application/json":
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise Refused(message, None, "Bad Request")
    if not raw:
        raise _invalid("missing", "body", "Field required")
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as exc:
        raise _invalid("json_invalid", f"body.{exc.pos}", "JSON decode error") from None
    if not isinstance(body, dict):
        raise _invalid("model_attributes_type", "body", "Input should be a valid dictionary")
    return body


def _check_fields(body: dict[str, Any], kind: Kind) -> None:
    for key in _NEEDED[kind]:
        if key not in body:
            raise _invalid("missing", f"body.{key}", "Field required")
    for key, wanted in _TYPES.items():
        if body.get(key) is not None and not isinstance(body[key], wanted):
            raise _invalid(f"{wanted.__name__}_type", f"body.{key}", f"Input should be a valid {wanted.__name__}")
    if kind is Kind.TEXT and not body.get("prompt") and body.get("prompt") != []:
        raise Refused("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if kind in (Kind.TEXT, Kind.CHAT) and body.get("stream_options") and not body.get("stream"):
        raise Refused("Stream options can only be defined when `stream=True`.", "stream_options")
    if kind is Kind.CHAT and body.get("top_logprobs") and not body.get("logprobs"):
        raise Refused("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs")


def _check_sampling(body: dict[str, Any], cap: str) -> None:
    limit, choices = limit_of(body), body.get("n", 1)
    if choices < 1:
        raise Refused(f"n must be at least 1, got {choices}.")
    if choices > 1 and body.get("temperature") == 0:
        raise Refused(f"n must be 1 when using greedy sampling, got {choices}.")
    if (body.get("temperature") or 0) < 0:
        raise Refused("temperature must be non-negative.", "temperature")
    if limit < 1:
        raise Refused(f"max_tokens must be at least 1, got {limit}.", "max_tokens")
    if limit > MAX_MODEL_LEN:
        raise Refused(f"max_tokens={limit}, but this model's maximum context length is {MAX_MODEL_LEN}.", cap)
    if (body.get("min_tokens") or 0) > limit:
        raise Refused(f"min_tokens must be less than or equal to max_tokens={limit}, got {body['min_tokens']}.")
    for key in ("logprobs", "top_logprobs"):
        if (body.get(key) or 0) > _MOST_LOGPROBS:
            raise Refused("Requested more sample logprobs than allowed.", "logprobs")


def _check_length(body: dict[str, Any], chat: bool) -> None:
    """A prompt must leave room for one token; ``max_tokens`` that do not fit beside it are cut down, not refused."""
    if not body.get("messages" if chat else "prompt"):
        what = "Cannot apply chat template to an empty conversation." if chat else "You must pass at least one prompt"
        raise Refused(what)
    for prompt in prompts_of(body, chat):
        message = f"This model's maximum context length is {MAX_MODEL_LEN} tokens."
        if len(" ".join(prompt)) > MAX_MODEL_LEN * _CHARACTERS_PER_TOKEN:
            raise Refused(message, "input_text")
        if len(prompt) >= MAX_MODEL_LEN:
            raise Refused(message, "input_tokens")
