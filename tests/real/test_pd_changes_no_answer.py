"""Answers through the pair equal those of one engine where a hand-over could change them."""

import json
from typing import Any

import httpx
import pytest

from tests.real.conftest import MODEL, Pair
from tests.real.generated_requests import BLOCK
from tests.real.readings import reading

CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "What is the weather like? " * 20}]
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "warm": {"type": "boolean"}},
    "required": ["colour", "warm"],
    "additionalProperties": False,
}
PARAMETERS = {"type": "object", "properties": {"city": {"enum": ["Rom", "Oslo"]}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
NAMED = {"type": "function", "function": {"name": "weather"}}
BY_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}}
both_modes = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def ask_both(pair: Pair, route: str, body: dict[str, Any], salt: str) -> tuple[httpx.Response, httpx.Response]:
    """The answers through the pair and of decode alone, whose KV caches salts keep apart."""
    body = {"model": MODEL, "temperature": 0} | body
    with httpx.Client(trust_env=False, timeout=60) as client:
        through = client.post(pair.proxy + route, json=body | {"cache_salt": salt})
        alone = client.post(pair.decode + route, json=body | {"cache_salt": salt + " alone"})
    return through, alone


@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_prompts_around_the_size_of_a_block_cold_and_warm(length: int, pair: Pair):
    body = {"prompt": [10 + 7 * i % 900 for i in range(length)], "max_tokens": 20, "ignore_eos": True, "logprobs": 2}
    for _ in ("cold", "warm", "warm again"):
        through, alone = ask_both(pair, "/v1/completions", body, f"length {length}")
        assert through.headers["x-duet-path"] == "pd"
        assert reading(through) == reading(alone)
        assert through.json()["usage"]["prompt_tokens"] == length


@both_modes
def test_decode_makes_as_many_tokens_as_the_client_wants_at_least(stream: bool, pair: Pair):
    wish = {"max_tokens": 80, "min_tokens": 20, "stop_token_ids": [*range(0, 995, 2)], "messages": MESSAGES}
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    through, alone = ask_both(pair, CHAT, wish | options, f"at least {stream}")
    assert through.headers["x-duet-path"] == "pd"
    assert reading(through) == reading(alone)
    assert 20 <= int(through.text.rpartition('"completion_tokens":')[2].partition(",")[0]) < 80


@both_modes
def test_json_by_a_schema(stream: bool, pair: Pair):
    through, alone = ask_both(pair, CHAT, BY_SCHEMA | {"messages": MESSAGES, "stream": stream}, f"schema {stream}")
    assert through.headers["x-duet-path"] == "pd"
    assert reading(through) == reading(alone)
    text = text_of(through, "content")
    assert set(json.loads(text)) == {"colour", "warm"}


@both_modes
@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
@pytest.mark.parametrize("logprobs", [{}, {"logprobs": True, "top_logprobs": 2}], ids=["plain", "logprobs"])
def test_a_tool_call(choice: object, stream: bool, logprobs: dict, pair: Pair):
    wish = {"messages": MESSAGES, "tools": TOOLS, "tool_choice": choice, "stream": stream, "max_tokens": 60}
    through, alone = ask_both(pair, CHAT, wish | logprobs, f"tool {stream} {choice == NAMED} {len(logprobs)}")
    assert through.headers["x-duet-path"] == "pd"
    if stream:  # arguments come in pieces of any size
        for key in ("name", "arguments", "finish_reason", "token"):
            assert text_of(through, key) == text_of(alone, key)
    else:
        assert reading(through) == reading(alone)
    assert text_of(through, "name") == "weather"
    json.loads(text_of(through, "arguments"))
    assert text_of(through, "finish_reason") in {"stop", "tool_calls"}


def text_of(answer: httpx.Response, key: str) -> str:
    """All texts under a key, together: they are whole, or pieces of a stream."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith(("data: {", "{"))]
    found: list[str] = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                if name == key and isinstance(each, str):
                    found.append(each)
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    for line in lines:
        document = json.loads(line)
        for choice in document["choices"]:
            look(choice)
    return "".join(found)


@both_modes
def test_a_schema_that_is_none_is_refused_before_prefill(stream: bool, pair: Pair):
    bad = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "no"}}}}
    through, alone = ask_both(pair, CHAT, bad | {"messages": MESSAGES, "stream": stream}, "bad schema")
    assert reading(through) == reading(alone)
    assert (through.status_code, through.headers["content-type"]) == (400, "application/json")


@both_modes
@pytest.mark.parametrize(
    "wish",
    [
        {"temperature": 1, "seed": 7},
        {"logit_bias": {"100": 100, "200": 99}},
        {"logprobs": 5},
        {"frequency_penalty": 1.5, "stop": [" the"]},
    ],
    ids=lambda wish: next(iter(wish)),
)
def test_sampling(wish: dict, stream: bool, pair: Pair):
    body = {"prompt": "This License applies to any work. " * 20, "max_tokens": 20, "stream": stream}
    through, alone = ask_both(pair, "/v1/completions", body | wish, f"sampling {stream} {[*wish]}")
    assert through.headers["x-duet-path"] == "pd"
    assert reading(through) == reading(alone)
