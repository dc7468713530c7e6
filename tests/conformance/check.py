"""Whether an answer is what its case says, by the rules of its API."""

import json
from typing import Any

import httpx

from tests.conformance.cases import CHAT, MESSAGES, RESPONSES, TEXT, Case

SSE = "text/event-stream"
_OBJECTS = {TEXT: ("text_completion", "text_completion"), CHAT: ("chat.completion", "chat.completion.chunk")}
_NO_ROUTE = (404, 405)


def check(case: Case, answer: httpx.Response) -> None:
    """Fails where a rule is broken."""
    assert answer.status_code == case.status, answer.text
    if case.status != 200:
        _check_error(case, answer)
    elif case.keys:
        assert set(case.keys) <= set(answer.json())
    elif case.wishes.get("stream"):
        _check_stream(case, answer)
    elif case.path in (TEXT, CHAT, RESPONSES, MESSAGES):
        assert answer.headers["content-type"] == "application/json"
        _check_whole(case, answer.json())


def _check_error(case: Case, answer: httpx.Response) -> None:
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get("allow") == case.allow
    if case.method == "HEAD":
        assert answer.content == b""
        return
    document = answer.json()
    if case.allow or case.path == "/v1/nothing":
        assert set(document) == {"detail"}
        return
    error = document["error"]
    assert error["message"]
    assert error["type"]
    if set(document) == {"type", "error"}:
        assert (case.path, document["type"]) == (MESSAGES, "error")
        return
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == case.status
    assert case.param in (None, error["param"])


def _check_whole(case: Case, document: dict[str, Any]) -> None:
    assert document["id"]
    match case.path:
        case "/v1/responses":
            assert document["object"] == "response"
            assert document["status"] == "incomplete"
            assert document["output"][0]["content"][0]["type"] == "output_text"
        case "/v1/messages":
            assert (document["type"], document["role"]) == ("message", "assistant")
            assert document["stop_reason"] in case.finish
            assert document["content"][0]["type"] == "text"
        case _:
            assert document["object"] == _OBJECTS[case.path][0]
            choices = document["choices"]
            assert [choice["index"] for choice in choices] == [*range(case.choices)]
            assert all(choice["finish_reason"] in case.finish for choice in choices)
            wanted = case.wishes.get("logprobs") is not None
            assert all((choice["logprobs"] is not None) == wanted for choice in choices)
            texts = [choice["text"] if case.path == TEXT else choice["message"]["content"] for choice in choices]
            assert all(isinstance(text, str) for text in texts)
            if case.wishes.get("echo"):
                assert texts[0].startswith(case.wishes["prompt"])
    assert document.get("kv_transfer_params") is None
    _check_usage(case, document["usage"])


def _check_usage(case: Case, usage: dict[str, Any]) -> None:
    generated = usage["completion_tokens"] if "completion_tokens" in usage else usage["output_tokens"]
    prompt = usage["prompt_tokens"] if "prompt_tokens" in usage else usage["input_tokens"]
    assert generated > 0
    assert prompt >= 0
    assert case.tokens in (None, generated)
    if "total_tokens" in usage:
        assert usage["total_tokens"] == prompt + generated


def _check_stream(case: Case, answer: httpx.Response) -> None:
    assert answer.headers["content-type"].partition(";")[0] == SSE
    assert "content-length" not in answer.headers
    assert answer.text.endswith("\n\n")
    events = [event.rpartition("data: ") for event in answer.text.split("\n\n")[:-1]]
    if case.path in (TEXT, CHAT):
        assert all(name == "" for name, _, _ in events)
        assert [data == "[DONE]" for _, _, data in events] == [False] * (len(events) - 1) + [True]
        _check_chunks(case, [json.loads(data) for _, _, data in events[:-1]])
        return
    documents = [json.loads(data) for _, _, data in events]
    assert [name.removeprefix("event: ").strip() for name, _, _ in events] == [each["type"] for each in documents]
    assert "error" not in {each["type"] for each in documents}
    if case.path == RESPONSES:
        assert documents[0]["type"] == "response.created"
        assert documents[-1]["type"] == "response.completed"
        assert [each["sequence_number"] for each in documents] == [*range(len(documents))]
        _check_whole(case, documents[-1]["response"])
    else:
        assert documents[0]["type"] == "message_start"
        assert documents[-1]["type"] == "message_stop"
        assert documents[-2]["delta"]["stop_reason"] in case.finish
        _check_usage(case, documents[-2]["usage"])


def _check_chunks(case: Case, chunks: list[dict[str, Any]]) -> None:
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {_OBJECTS[case.path][1]}
    pieces = [choice for chunk in chunks for choice in chunk["choices"]]
    for index in range(case.choices):
        mine = [piece for piece in pieces if piece["index"] == index]
        reasons = [piece["finish_reason"] for piece in mine]
        assert set(reasons[:-1]) <= {None}
        assert reasons[-1] in case.finish
        if case.path == CHAT:
            assert mine[0]["delta"]["role"] == "assistant"
    assert {piece["index"] for piece in pieces} == {*range(case.choices)}
    options = case.wishes.get("stream_options", {})
    if options.get("include_usage"):
        *before, last = chunks
        assert last["choices"] == []
        _check_usage(case, last["usage"])
        assert all(bool(chunk.get("usage")) == bool(options.get("continuous_usage_stats")) for chunk in before)
    else:
        assert all(chunk["choices"] and not chunk.get("usage") for chunk in chunks)
