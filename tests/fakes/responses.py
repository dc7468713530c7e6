"""How vLLM 0.32 answers ``/v1/responses``: as a chat, told otherwise."""

from collections.abc import Iterator

from tests.fakes.answers import CREATED, MAX_MODEL_LEN, named_event
from tests.fakes.completions import Choice

_ITEM = "msg_1"
_TYPE = "output_text"


def as_chat(body: dict) -> dict:
    """The request as one for ``/v1/chat/completions``."""
    chat = {key: value for key, value in body.items() if key != "input"}
    if "input" in body:
        chat["messages"] = [{"role": "user", "content": body["input"]}]
    return chat | {"max_completion_tokens": body.get("max_output_tokens")}


def whole(body: dict, model: str, answer: str, choice: Choice, kv: dict | None) -> dict:
    """An answer that is not streamed. An abort looks like any other end."""
    output = [_item(choice)] if choice.tokens else []
    status = "incomplete" if choice.finish == "length" else "completed"
    return _response(body, model, answer, choice, status=status, output=output) | {"kv_transfer_params": kv}


def events(body: dict, model: str, answer: str, choice: Choice, kv: dict | None) -> list[bytes | None]:
    """A streamed answer, one event after the other; ``None`` breaks off, as an error does."""
    documents = _documents(body, model, answer, choice, kv)
    numbered = (document | {"sequence_number": number} for number, document in enumerate(documents))
    told: list[bytes | None] = [named_event(document["type"], document) for document in numbered]
    return [*told[:-4], None] if choice.finish == "error" else told


def _documents(body: dict, model: str, answer: str, choice: Choice, kv: dict | None) -> Iterator[dict]:
    begun = _response(body, model, answer, choice, status="in_progress", output=[]) | {"usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    where = {"item_id": _ITEM, "output_index": 0, "content_index": 0}
    if choice.tokens or choice.finish == "error":
        if choice.tokens:
            item = _item(choice) | {"content": [], "status": "in_progress"}
            yield {"type": "response.output_item.added", "item": item, "output_index": 0}
            yield {"type": "response.content_part.added", **where, "part": _text("") | {"logprobs": []}}
        for text in choice.texts:
            yield {"type": "response.output_text.delta", **where, "delta": text, "logprobs": []}
        yield {"type": "response.output_text.done", **where, "text": "".join(choice.texts), "logprobs": []}
        yield {"type": "response.content_part.done", **where, "part": _text("".join(choice.texts))}
        yield {"type": "response.output_item.done", "item": _item(choice), "output_index": 0}
    yield {"type": "response.completed", "response": whole(body, model, answer, choice, kv)}


def _text(text: str) -> dict:
    return {"annotations": [], "text": text, "type": _TYPE, "logprobs": None}


def _item(choice: Choice) -> dict:
    text = "".join(choice.texts)
    return {
        "id": _ITEM,
        "content": [_text(text)] if text else [],
        "role": "assistant",
        "status": "completed",
        "type": "message",
        "phase": None,
    }


def _response(body: dict, model: str, answer: str, choice: Choice, *, status: str, output: list) -> dict:
    limit = body.get("max_output_tokens")
    unused = ("instructions", "metadata", "max_tool_calls", "previous_response_id", "prompt", "reasoning", "text")
    echoed = {key: body.get(key) for key in unused}
    return {
        "id": answer,
        "created_at": CREATED,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        **echoed,
        "model": model,
        "object": "response",
        "output": output,
        "parallel_tool_calls": True,
        "temperature": float(body.get("temperature", 1)),
        "tool_choice": body.get("tool_choice", "none"),
        "tools": body.get("tools", []),
        "top_p": float(body.get("top_p", 1)),
        "background": False,
        "max_output_tokens": MAX_MODEL_LEN - len(choice.prompt) if limit is None else limit,
        "service_tier": "auto",
        "status": status,
        "top_logprobs": None,
        "truncation": "disabled",
        "usage": _usage(choice),
        "user": body.get("user"),
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }


def _usage(choice: Choice) -> dict:
    prompt, generated = len(choice.prompt), len(choice.tokens)
    cached = {"cached_tokens": 0, "cache_write_tokens": 0}
    counted = {"reasoning_tokens": 0, "tool_output_tokens": 0}
    return {
        "input_tokens": prompt,
        "input_tokens_details": cached | {"input_tokens_per_turn": [], "cached_tokens_per_turn": []},
        "output_tokens": generated,
        "output_tokens_details": counted | {"output_tokens_per_turn": [], "tool_output_tokens_per_turn": []},
        "total_tokens": prompt + generated,
    }
