"""What answers say, apart from what must differ between two answers to one request: ids, times, pieces of a stream."""

import json
from typing import Any

import httpx

_OWN = {"id", "created", "created_at", "item_id"}
# Tokens that the answering engine has written into its prefix cache: with KV handed over, none.
_WRITTEN = ("created_cache_tokens", "cache_write_tokens", "cache_creation_input_tokens")
_DELTAS = {"response.output_text.delta", "response.function_call_arguments.delta", "content_block_delta"}


def reading(answer: httpx.Response) -> tuple[int, str, Any]:
    """Status, content type, and what the answer says."""
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        return answer.status_code, kind, _plain(answer.json())
    events = [event for event in answer.text.split("\n\n") if event]
    assert answer.text.endswith("\n\n")
    *said, last = [event.rpartition("data: ")[2] for event in events]
    if last != "[DONE]":
        said.append(last)
    documents = [_plain(json.loads(data)) for data in said]
    if len(documents) == 1 and "error" in documents[0]:  # which through the proxy is a true status
        return documents[0]["error"]["code"], "application/json", documents[0]
    if any("choices" in document for document in documents):
        return answer.status_code, kind, (_choices(documents), last == "[DONE]")
    return answer.status_code, kind, _joined(documents)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return round(value, 3)
    if not isinstance(value, dict):
        return value
    kept = {key: _plain(each) for key, each in value.items() if key not in _OWN}
    if "cache_creation_input_tokens" in kept:  # which this API does not count as input
        kept["input_tokens"] += kept["cache_creation_input_tokens"]
    return {key: "written" if key in _WRITTEN and each is not None else each for key, each in kept.items()}


def _choices(documents: list[dict]) -> Any:
    """A stream of completions: what was said of each choice, all pieces together, and everything else."""
    together: dict[int, dict[str, Any]] = {}
    rest: dict[str, Any] = {}
    for document in documents:
        for choice in document.get("choices", []):
            _add(together.setdefault(choice["index"], {}), choice)
        rest |= {key: value for key, value in document.items() if value is not None}
    del rest["choices"]
    return together, rest


def _add(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    """Add a piece of a stream to what came before."""
    for key, value in piece.items():
        before = whole.get(key)
        if value is None or before is None:
            whole[key] = before if value is None else value
        elif isinstance(value, dict):
            whole[key] = dict(before)
            _add(whole[key], value)
        elif isinstance(value, str | list) and key not in {"role", "type", "name", "finish_reason"}:
            whole[key] = before + value
        else:
            whole[key] = value


def _joined(documents: list[dict]) -> list[dict]:
    """A stream of named events: one delta for deltas that follow each other, and no numbers."""
    joined: list[dict] = []
    for document in documents:
        document.pop("sequence_number", None)
        if document.get("type") == "response.output_text.delta":  # vLLM forgets those of no text that come alone
            document["logprobs"] = [each for each in document["logprobs"] if each["token"]]
        if joined and document["type"] == joined[-1]["type"] and document["type"] in _DELTAS:
            _add(joined[-1], document | {"type": None})
        else:
            joined.append(document)
    return joined
