"""How vLLM 0.32 answers ``/v1/messages``: as a chat, told otherwise."""

import json
from collections.abc import Iterator

from tests.fakes.answers import named_event
from tests.fakes.completions import FAILED, Choice

_REASONS = {"length": "max_tokens", "stop": "end_turn", "abort": None}


def as_chat(body: dict) -> dict:
    """The request as one for ``/v1/chat/completions``."""
    return body | {"stop": body.get("stop_sequences")}


def refusal(body: bytes) -> bytes:
    """A refusal of a chat as this API tells it."""
    told = json.loads(body)["error"]
    return json.dumps(error(told["type"], told["message"])).encode()


def error(kind: str, message: str) -> dict:
    """An error's body."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def failed() -> dict:
    """The answer when the engine ends a request with the reason "error"."""
    return error(FAILED["error"]["type"], FAILED["error"]["message"])


def whole(model: str, answer: str, choice: Choice, kv: dict | None) -> dict:
    """An answer that is not streamed; what is not set is left out, so that an abort has no reason."""
    content = [{"type": "text", "text": "".join(choice.texts)}]
    start = {"id": answer, "type": "message", "role": "assistant", "content": content, "model": model}
    usage = {"usage": _usage(choice, len(choice.tokens))}
    return start | {key: value for key, value in _stop(choice).items() if value} | usage | _given(kv)


def events(model: str, answer: str, choice: Choice) -> list[bytes]:
    """A streamed answer, one event after the other."""
    return [named_event(document["type"], document) for document in _documents(model, answer, choice)]


def _documents(model: str, answer: str, choice: Choice) -> Iterator[dict]:
    usage = {"input_tokens": len(choice.prompt), "output_tokens": 0}
    begun = {"id": answer, "type": "message", "role": "assistant", "content": [], "model": model}
    none = {"stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": begun | none | {"usage": usage}}
    if any(choice.texts):
        yield {"type": "content_block_start", "content_block": {"type": "text", "text": ""}, "index": 0}
    for text in filter(None, choice.texts):
        delta = {"type": "text_delta", "text": text}
        yield {"type": "content_block_delta", "delta": delta, "index": 0}
    if choice.finish == "error":
        yield error("internal_error", "the chunk of the chat was no chunk")
        return
    if any(choice.texts):
        yield {"type": "content_block_stop", "index": 0}
    stop = _stop(choice) if choice.tokens else {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": _usage(choice, len(choice.tokens))}
    yield {"type": "message_stop"}


def _stop(choice: Choice) -> dict:
    reason = "stop_sequence" if choice.stop else _REASONS.get(choice.finish)
    return {"stop_reason": reason, "stop_sequence": choice.stop}


def _usage(choice: Choice, generated: int) -> dict:
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": len(choice.prompt), "output_tokens": generated, **cached}


def _given(kv: dict | None) -> dict:
    return {} if kv is None else {"kv_transfer_params": kv}
