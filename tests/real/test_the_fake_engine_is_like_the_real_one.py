"""The fake engine cannot drift: the same requests get answers of the same shape and the same status."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.agreement import Fact, Identity, contradiction
from proxy.config import load
from proxy.engine import EngineClient
from proxy.health.identity import identify
from proxy.topology import Instance, Role
from tests.fakes.answers import kv_params
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault
from tests.real.conftest import MODEL, Pair

HAND_OVER = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
# As many tokens as are not all said in one event, however slow the reader is.
COMMON = {"model": MODEL, "max_tokens": 100, "temperature": 0, "ignore_eos": True}
CHAT = {**COMMON, "messages": [{"role": "user", "content": "one two three"}]}
TEXT = {**COMMON, "prompt": "one two three"}
RESPONSE = {"model": MODEL, "input": "one two three", "max_output_tokens": 100, "temperature": 0, "ignore_eos": True}
ONE_OUTPUT = {"max_output_tokens": 1}
MESSAGE = {"model": MODEL, "max_tokens": 100, "temperature": 0, "messages": CHAT["messages"]}
STREAM = {"stream": True}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
RUNNING_USAGE = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
# A token that is a part of a character has no bytes and is not said when it comes.
WHOLE_CHARACTERS = {"allowed_token_ids": [358, 421, 700]}
SOME_LOGPROBS = WHOLE_CHARACTERS | {"logprobs": True}
TWO = {"n": 2, "temperature": 1}

REQUESTS = {
    "chat": ("/v1/chat/completions", CHAT),
    "chat stream": ("/v1/chat/completions", CHAT | {"stream": True}),
    "chat stream with usage": ("/v1/chat/completions", CHAT | USAGE),
    "chat for decode": ("/v1/chat/completions", CHAT | {"kv_transfer_params": HAND_OVER}),
    "chat of several choices": ("/v1/chat/completions", CHAT | {"n": 2, "temperature": 1}),
    "text": ("/v1/completions", TEXT),
    "text stream": ("/v1/completions", TEXT | {"stream": True}),
    "text stream with usage": ("/v1/completions", TEXT | USAGE),
    "text for decode": ("/v1/completions", TEXT | {"kv_transfer_params": HAND_OVER}),
    "text of several prompts": ("/v1/completions", TEXT | {"prompt": ["one", "two"]}),
    "chat for decode of one token": ("/v1/chat/completions", CHAT | {"kv_transfer_params": HAND_OVER, "max_tokens": 1}),
    "text for decode of one token": ("/v1/completions", TEXT | {"kv_transfer_params": HAND_OVER, "max_tokens": 1}),
    "chat stream for decode": ("/v1/chat/completions", CHAT | STREAM | {"kv_transfer_params": HAND_OVER}),
    "chat stream of one token": ("/v1/chat/completions", CHAT | STREAM | {"max_tokens": 1}),
    "chat stream with running usage": ("/v1/chat/completions", CHAT | RUNNING_USAGE),
    "text stream with running usage": ("/v1/completions", TEXT | RUNNING_USAGE),
    "chat stream of several choices": ("/v1/chat/completions", CHAT | STREAM | TWO | WHOLE_CHARACTERS),
    "text stream of several prompts": ("/v1/completions", TEXT | STREAM | {"prompt": ["one", "two"]}),
    "chat with a stop": ("/v1/chat/completions", CHAT | {"stop": ["f"]}),
    "chat stream with a stop": ("/v1/chat/completions", CHAT | STREAM | {"stop": "f"}),
    "text with a stop": ("/v1/completions", TEXT | {"stop": "b"}),
    "text stream with a stop": ("/v1/completions", TEXT | STREAM | {"stop": ["b"]}),
    "chat with logprobs": ("/v1/chat/completions", CHAT | SOME_LOGPROBS),
    "chat with top logprobs": ("/v1/chat/completions", CHAT | {"max_tokens": 1, "logprobs": True, "top_logprobs": 1}),
    "chat stream with logprobs": ("/v1/chat/completions", CHAT | STREAM | SOME_LOGPROBS),
    "text of token numbers": ("/v1/completions", TEXT | {"prompt": [100, 101, 102]}),
    "text of several prompts of token numbers": ("/v1/completions", TEXT | {"prompt": [[100, 101], [102]]}),
    "text with echo": ("/v1/completions", TEXT | {"echo": True}),
    "text stream with echo": ("/v1/completions", TEXT | STREAM | {"echo": True}),
    "chat with token numbers": ("/v1/chat/completions", CHAT | {"return_token_ids": True}),
    "chat stream with token numbers": (
        "/v1/chat/completions",
        CHAT | STREAM | WHOLE_CHARACTERS | {"return_token_ids": True},
    ),
    "text with token numbers": ("/v1/completions", TEXT | {"return_token_ids": True}),
    "text stream with token numbers": ("/v1/completions", TEXT | STREAM | {"return_token_ids": True}),
    "chat without a model": ("/v1/chat/completions", {"messages": CHAT["messages"], "max_tokens": 3}),
    "text that fits with fewer tokens only": ("/v1/completions", TEXT | {"prompt": "one " * 90, "max_tokens": 1024}),
    "unknown model": ("/v1/chat/completions", CHAT | {"model": "another"}),
    "unknown model, stream": ("/v1/completions", TEXT | STREAM | {"model": "another"}),
    "unknown model, too long": ("/v1/completions", TEXT | {"model": "another", "max_tokens": 100_000}),
    "stream options without a stream": ("/v1/chat/completions", CHAT | {"stream_options": {"include_usage": True}}),
    "more tokens at least than at most": ("/v1/chat/completions", CHAT | {"min_tokens": 101}),
    "too long": ("/v1/chat/completions", CHAT | {"max_tokens": 100_000}),
    "no tokens": ("/v1/completions", TEXT | {"max_tokens": 0}),
    "a prompt of too many tokens": ("/v1/completions", TEXT | {"prompt": "a " * 5000}),
    "a prompt of too many characters": ("/v1/completions", TEXT | {"prompt": "one " * 10_000}),
    "a chat of too many characters": (
        "/v1/chat/completions",
        CHAT | {"messages": [{"role": "user", "content": "one " * 10_000}]},
    ),
    "no prompt": ("/v1/completions", {"model": MODEL}),
    "an empty prompt": ("/v1/completions", TEXT | {"prompt": ""}),
    "a prompt of nothing": ("/v1/completions", TEXT | {"prompt": []}),
    "no messages": ("/v1/chat/completions", {"model": MODEL}),
    "empty messages": ("/v1/chat/completions", CHAT | {"messages": []}),
    "messages as text": ("/v1/chat/completions", CHAT | {"messages": "one"}),
    "text for a number": ("/v1/chat/completions", CHAT | {"max_tokens": "x"}),
    "text for KV parameters": ("/v1/chat/completions", CHAT | {"kv_transfer_params": "x"}),
    "no choices": ("/v1/chat/completions", CHAT | {"n": 0}),
    "greedy choices": ("/v1/completions", TEXT | {"n": 2}),
    "a temperature below zero": ("/v1/chat/completions", CHAT | {"temperature": -1}),
    "too many logprobs": ("/v1/completions", TEXT | {"logprobs": 50}),
    "response": ("/v1/responses", RESPONSE),
    "response stream": ("/v1/responses", RESPONSE | STREAM),
    "response of one token": ("/v1/responses", RESPONSE | {"max_output_tokens": 1}),
    "response stream of one token": ("/v1/responses", RESPONSE | STREAM | {"max_output_tokens": 1}),
    "response with a stop": ("/v1/responses", RESPONSE | {"stop": ["f"]}),
    "response stream with a stop": ("/v1/responses", RESPONSE | STREAM | {"stop": ["f"]}),
    "response for decode": ("/v1/responses", RESPONSE | {"kv_transfer_params": HAND_OVER}),
    "response for decode of one token": ("/v1/responses", RESPONSE | ONE_OUTPUT | {"kv_transfer_params": HAND_OVER}),
    "response stream for decode": ("/v1/responses", RESPONSE | STREAM | {"kv_transfer_params": HAND_OVER}),
    "response without a limit": ("/v1/responses", RESPONSE | {"max_output_tokens": None, "stop": ["f"]}),
    "response of an unknown model": ("/v1/responses", RESPONSE | {"model": "another"}),
    "response without input": ("/v1/responses", {"model": MODEL}),
    "response of no tokens": ("/v1/responses", RESPONSE | {"max_output_tokens": 0}),
    "response of too many tokens": ("/v1/responses", RESPONSE | {"max_output_tokens": 100_000}),
    "response that is too long": ("/v1/responses", RESPONSE | {"input": "a " * 5000}),
    "response to another that is unknown": ("/v1/responses", RESPONSE | {"previous_response_id": "resp_1"}),
    "response of a temperature below zero": ("/v1/responses", RESPONSE | {"temperature": -1}),
    "message": ("/v1/messages", MESSAGE),
    "message stream": ("/v1/messages", MESSAGE | STREAM),
    "message of one token": ("/v1/messages", MESSAGE | {"max_tokens": 1}),
    "message stream of one token": ("/v1/messages", MESSAGE | STREAM | {"max_tokens": 1}),
    "message with a stop": ("/v1/messages", MESSAGE | {"stop_sequences": ["f"]}),
    "message stream with a stop": ("/v1/messages", MESSAGE | STREAM | {"stop_sequences": ["f"]}),
    "message for decode": ("/v1/messages", MESSAGE | {"kv_transfer_params": HAND_OVER}),
    "message for decode of one token": ("/v1/messages", MESSAGE | {"max_tokens": 1, "kv_transfer_params": HAND_OVER}),
    "message stream for decode": ("/v1/messages", MESSAGE | STREAM | {"kv_transfer_params": HAND_OVER}),
    "message of an unknown model": ("/v1/messages", MESSAGE | {"model": "another"}),
    "message without a limit": ("/v1/messages", {"model": MODEL, "messages": MESSAGE["messages"]}),
    "message without a model": ("/v1/messages", {"max_tokens": 5, "messages": MESSAGE["messages"]}),
    "message without messages": ("/v1/messages", {"model": MODEL, "max_tokens": 5}),
    "message of too many tokens": ("/v1/messages", MESSAGE | {"max_tokens": 100_000}),
    "message that is too long": ("/v1/messages", MESSAGE | {"messages": [{"role": "user", "content": "a " * 5000}]}),
    "message of a temperature below zero": ("/v1/messages", MESSAGE | {"temperature": -1}),
    "top logprobs without logprobs": ("/v1/chat/completions", CHAT | {"top_logprobs": 2}),
}

JSON = {"content-type": "application/json"}
RAW_REQUESTS = {
    "bad JSON": ("POST", "/v1/chat/completions", b"{nope", JSON),
    "half a JSON": ("POST", "/v1/completions", b'{"model": ', JSON),
    "an array": ("POST", "/v1/completions", b"[1]", JSON),
    "no body": ("POST", "/v1/completions", b"", JSON),
    "another content type": ("POST", "/v1/chat/completions", json.dumps(CHAT).encode(), {"content-type": "text/plain"}),
    "no content type": ("POST", "/v1/completions", json.dumps(TEXT).encode(), {}),
    "a content type with a charset": (
        *("POST", "/v1/completions", json.dumps(TEXT).encode()),
        {"content-type": "application/json; charset=utf-8"},
    ),
    "a wrong method": ("GET", "/v1/chat/completions", b"", {}),
    "another wrong method": ("PUT", "/v1/completions", b"{}", JSON),
    "a post to a document": ("POST", "/v1/models", b"{}", JSON),
    "an unknown path": ("GET", "/v1/nothing", b"", {}),
    "a post to an unknown path": ("POST", "/v1/nothing", b"{}", JSON),
    "health": ("GET", "/health", b"", {}),
    "models": ("GET", "/v1/models", b"", {}),
    "version": ("GET", "/version", b"", {}),
    "tokenize": ("POST", "/tokenize", json.dumps({"model": MODEL, "prompt": "one two"}).encode(), JSON),
}


def shape(value: Any) -> Any:
    """Keys and types of a document; a list is its first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def judged(document: dict[str, Any]) -> Any:
    """The shape of a document; of an error, all but the text of the message."""
    error = document.get("error")
    return document | {"error": error | {"message": type(error["message"]).__name__}} if error else shape(document)


def choice_of(event: dict[str, Any]) -> int:
    """Which choice an event is about; the usage at the end is about none."""
    return event["choices"][0]["index"] if event.get("choices") else sys.maxsize


def shapes(response: httpx.Response) -> tuple[int, set[str], list[str | None], list[Any]]:
    """Status, headers, and the shape of the whole answer or of its events, repetitions left out.

    Events of several choices mix as they like, so they are looked at choice by choice.
    """
    headers = [response.headers.get(name) for name in ("content-type", "allow", "server", "vary")]
    return response.status_code, set(response.headers), headers, _parts(response)


def _parts(response: httpx.Response) -> list[Any]:
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind != "text/event-stream":
        return [judged(response.json())] if response.content else []
    return events_of(response.text)


def events_of(text: str) -> list[Any]:
    """Names and shapes of a stream's events, repetitions left out."""
    events = [event.rpartition("data: ") for event in text.split("\n\n") if event]
    said = [(name, json.loads(data)) for name, _, data in events if data != "[DONE]"]
    found = [(name, judged(document)) for name, document in sorted(said, key=lambda event: choice_of(event[1]))]
    different = [each for i, each in enumerate(found) if i == 0 or each != found[i - 1]]
    return [*different, *(data for _, _, data in events if data == "[DONE]")]


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
async def test_answers(request_of: tuple[str, dict[str, Any]], pair: Pair):
    path, body = request_of
    async with FakeEngine("prefill", model=MODEL) as fake, httpx.AsyncClient(trust_env=False, timeout=60) as client:
        real = await client.post(pair.prefill + path, json=body)
        faked = await client.post(fake.url + path, json=body)

    assert shapes(faked) == shapes(real)


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_log_probabilities_of_prompts(count: int, pair: Pair):
    body = TEXT | {"prompt": [100, 101, 102, 103], "max_tokens": 1, "prompt_logprobs": count}
    async with FakeEngine("prefill", model=MODEL) as fake, httpx.AsyncClient(trust_env=False, timeout=60) as client:
        real = places_of(await client.post(f"{pair.prefill}/v1/completions", json=body))
        faked = places_of(await client.post(f"{fake.url}/v1/completions", json=body))

    for places in (real, faked):
        assert places[0] is None
        for token, place in zip(body["prompt"][1:], places[1:], strict=True):
            ranks = sorted(each["rank"] for each in place.values())
            assert ranks[:count] == [*range(1, count + 1)]
            assert len(ranks) == count + (place[str(token)]["rank"] > count)
    assert entries_of(faked) == entries_of(real)


def places_of(response: httpx.Response) -> list[Any]:
    """What is told of each token of the prompt."""
    (choice,) = response.json()["choices"]
    return choice["prompt_logprobs"]


def entries_of(places: list[Any]) -> list[Any]:
    """The shapes of what is told of tokens; how likely they are, only a model knows."""
    found = [shape(each) for place in places[1:] for each in place.values()]
    return [each for number, each in enumerate(found) if each not in found[:number]]


@pytest.mark.parametrize("request_of", RAW_REQUESTS.values(), ids=RAW_REQUESTS)
async def test_other_requests(request_of: tuple[str, str, bytes, dict[str, str]], pair: Pair):
    method, path, body, headers = request_of
    async with FakeEngine("prefill", model=MODEL) as fake, httpx.AsyncClient(trust_env=False, timeout=60) as client:
        real = await client.request(method, pair.prefill + path, content=body, headers=headers)
        faked = await client.request(method, fake.url + path, content=body, headers=headers)

    assert shapes(faked) == shapes(real)


GENERATING = [(path, body) for path, body in REQUESTS.values() if body in (CHAT, TEXT, RESPONSE, MESSAGE)]
# Nobody listens at this port.
LOST_KV = kv_params("engine", "cmpl-1", 1, 3)


async def told(client: httpx.AsyncClient, url: str, body: dict[str, Any], after: Any = None) -> tuple[Any, ...]:
    """Status and shape of an answer, and whether it broke off; ``after`` is called when a token has come."""
    text, broken = "", False
    async with client.stream("POST", url, json=body) as answer:
        try:
            async for part in answer.aiter_text():
                text += part
                if after is not None and "delta" in text.replace('"delta":{"role"', ""):
                    await after()
                    after = None
        except httpx.RemoteProtocolError:
            broken = True
    if answer.headers["content-type"].startswith("text/event-stream"):
        return answer.status_code, events_of(text), broken
    return answer.status_code, judged(json.loads(text)), broken


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), GENERATING)
async def test_kv_that_cannot_be_loaded(path: str, body: dict[str, Any], stream: bool, pair: Pair):
    body = body | {"stream": stream, "kv_transfer_params": LOST_KV, "cache_salt": f"lost {stream} {path[4:7]}"}
    async with FakeEngine("decode", model=MODEL) as fake, httpx.AsyncClient(trust_env=False, timeout=60) as client:
        fake.faults.append(Fault(ending=Ending("error")))
        assert await told(client, fake.url + path, body) == await told(client, pair.decode + path, body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), GENERATING)
async def test_a_request_that_is_given_up_before_its_first_token(
    path: str, body: dict[str, Any], stream: bool, pair: Pair
):
    body = body | {"stream": stream}
    async with FakeEngine("decode", model=MODEL) as fake, httpx.AsyncClient(trust_env=False, timeout=60) as client:
        fake.faults.append(Fault(ending=Ending("abort")))
        await client.post(f"{pair.decode}/pause?mode=keep")
        real = asyncio.create_task(told(client, pair.decode + path, body))
        while not (await client.post(f"{pair.decode}/abort_requests", json={"request_ids": []})).json()["aborted"]:
            pass
        await client.post(f"{pair.decode}/resume")
        assert await told(client, fake.url + path, body) == await real


@pytest.mark.parametrize(("path", "body"), [each for each in GENERATING if each[0] != "/v1/completions"])
async def test_a_stream_that_is_given_up_after_some_tokens(path: str, body: dict[str, Any], pair: Pair):
    body = body | STREAM | (WHOLE_CHARACTERS if path == "/v1/chat/completions" else {})

    async def give_up() -> None:
        await client.post(f"{pair.decode}/abort_requests", json={"request_ids": []})

    async with FakeEngine("decode", model=MODEL) as fake, httpx.AsyncClient(trust_env=False, timeout=60) as client:
        fake.faults.append(Fault(ending=Ending("abort", 3)))
        faked = await told(client, fake.url + path, body)
        real = await told(client, pair.decode + path, body, give_up)

    assert without_last_words(faked) == without_last_words(real)


def without_last_words(told: tuple[Any, ...]) -> tuple[Any, ...]:
    """The engine merges tokens that nobody has fetched yet, so the end may come with some or alone, by chance."""
    status, events, broken = told
    for _, document in [event for event in events if event != "[DONE]"]:
        for choice in document.get("choices", []):
            if choice["finish_reason"] == "str":
                choice["delta"].pop("content", None)
    return status, events, broken


async def test_metrics(pair: Pair):
    async with FakeEngine("decode", model=MODEL) as fake, httpx.AsyncClient(trust_env=False) as client:
        real = await client.get(pair.decode + "/metrics")
        faked = await client.get(fake.url + "/metrics")

    assert series(faked) <= series(real)
    assert faked.headers["content-type"] == real.headers["content-type"]


def series(metrics: httpx.Response) -> set[str]:
    """Names and labels; of the cache's configuration, the labels' names: sizes depend on the machine."""
    found = {line.rpartition(" ")[0] for line in metrics.text.splitlines()}
    (cache,) = (each for each in found if each.startswith("vllm:cache_config_info{"))
    return found - {cache} | {re.sub(r'"[^"]*"', '""', cache)}


async def test_what_an_engine_says_of_itself(pair: Pair, model_folder: Path):
    client = EngineClient()
    async with FakeEngine("decode", model=MODEL) as fake:
        fake.root, fake.block_size = str(model_folder), 128
        real, faked = [
            dict(await identify(client, Instance("decode-0", Role.DECODE, url), 10)) for url in (pair.decode, fake.url)
        ]
    await client.aclose()
    assert real.pop("longest sequence") == "1024"
    assert faked.pop("longest sequence") == "2048"
    assert faked == real


async def test_an_engine_is_what_it_was_declared_to_be(pair: Pair):
    (declared,) = [
        each for each in load(pair.launcher.run_directory / "proxy.json").topology.instances if each.name == "decode-0"
    ]
    client = EngineClient()
    observed = await identify(client, declared, 10)
    await client.aclose()
    assert contradiction(Identity(declared.name, declared.fingerprint), observed) == ""
    assert {"vLLM version", "model", "KV cache dtype"} <= declared.fingerprint.keys() & observed.keys()
    assert declared.fingerprint[Fact.WEIGHTS]
