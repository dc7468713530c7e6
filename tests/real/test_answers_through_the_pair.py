"""A client cannot tell the pair from one engine, and the KV cache really moves."""

import json

import httpx
import openai
import pytest

from tests.launcher.local.deployments import wait_until
from tests.real.conftest import MODEL, Pair

PROMPT = "This License applies to any program or other work which contains a notice. " * 8
MESSAGES = [{"role": "user", "content": PROMPT}]
GREEDY = {"model": MODEL, "temperature": 0, "max_tokens": 24}


def chat(client: openai.OpenAI, prompt: str, salt: str, *, stream: bool) -> tuple[str, int]:
    """Text and prompt tokens."""
    messages = [{"role": "user", "content": prompt}]
    if not stream:
        answer = client.chat.completions.create(messages=messages, extra_body={"cache_salt": salt}, **GREEDY)
        return answer.choices[0].message.content, answer.usage.prompt_tokens
    chunks = client.chat.completions.create(
        messages=messages,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"cache_salt": salt},
        **GREEDY,
    )
    return joined(chunks, lambda choice: choice.delta.content)


def completion(client: openai.OpenAI, prompt: str, salt: str, *, stream: bool) -> tuple[str, int]:
    """Text and prompt tokens."""
    if not stream:
        answer = client.completions.create(prompt=prompt, extra_body={"cache_salt": salt}, **GREEDY)
        return answer.choices[0].text, answer.usage.prompt_tokens
    chunks = client.completions.create(
        prompt=prompt,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"cache_salt": salt},
        **GREEDY,
    )
    return joined(chunks, lambda choice: choice.text)


def response(client: openai.OpenAI, prompt: str, salt: str, *, stream: bool) -> tuple[str, int]:
    """Text and prompt tokens."""
    options = {"model": MODEL, "temperature": 0, "max_output_tokens": 24, "extra_body": {"cache_salt": salt}}
    if not stream:
        answer = client.responses.create(input=prompt, **options)
        return answer.output_text, answer.usage.input_tokens
    text, prompt_tokens = "", 0
    for event in client.responses.create(input=prompt, stream=True, **options):
        text += event.delta if event.type == "response.output_text.delta" else ""
        prompt_tokens = event.response.usage.input_tokens if event.type == "response.completed" else prompt_tokens
    return text, prompt_tokens


def message(client: openai.OpenAI, prompt: str, salt: str, *, stream: bool) -> tuple[str, int]:
    """Text and prompt tokens, which this API counts apart by what was cached."""
    body = {**GREEDY, "messages": [{"role": "user", "content": prompt}], "cache_salt": salt, "stream": stream}
    answer = httpx.post(f"{client.base_url}messages", json=body, trust_env=False, timeout=60)
    if not stream:
        document = answer.json()
        return document["content"][0]["text"], all_input(document["usage"])
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    text = "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")
    return text, next(all_input(event["usage"]) for event in events if event["type"] == "message_delta")


def all_input(usage: dict) -> int:
    return usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]


def joined(chunks, text_of) -> tuple[str, int]:
    text, prompt_tokens = "", 0
    for chunk in chunks:
        text += "".join(text_of(choice) or "" for choice in chunk.choices)
        prompt_tokens = chunk.usage.prompt_tokens if chunk.usage else prompt_tokens
    return text, prompt_tokens


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", [chat, completion, response, message])
def test_greedy_text_equals_decode_alone_and_all_prompt_tokens_come_from_prefill(
    endpoint, stream, pair: Pair, through_proxy: openai.OpenAI, to_decode: openai.OpenAI
):
    # Salts keep the two answers' KV caches apart: decode alone must compute what it compares with.
    moved, computed = pair.tokens("external_kv_transfer"), pair.tokens("local_compute")

    text, prompt_tokens = endpoint(through_proxy, PROMPT, f"pd {endpoint.__name__} {stream}", stream=stream)

    wait_until(lambda: pair.tokens("external_kv_transfer") >= moved + prompt_tokens)
    assert pair.tokens("external_kv_transfer") == moved + prompt_tokens
    assert pair.tokens("local_compute") == computed
    assert prompt_tokens > 128  # more than a block
    assert text
    assert (text, prompt_tokens) == endpoint(to_decode, PROMPT, f"alone {endpoint.__name__} {stream}", stream=stream)
    assert pair.tokens("local_compute") == computed + prompt_tokens


def test_the_models_are_the_engine_s_own_answer(pair: Pair):
    mine, theirs = (httpx.get(f"{url}/v1/models", trust_env=False).json() for url in (pair.proxy, pair.decode))
    for answer in (mine, theirs):  # each engine makes up the ids of its permissions
        for model in answer["data"]:
            del model["created"], model["permission"]
    assert mine == theirs
    assert mine["data"][0]["max_model_len"] == 1024


def test_an_engine_s_refusal_reaches_the_client_unchanged(pair: Pair, through_proxy: openai.OpenAI):
    with pytest.raises(openai.BadRequestError) as error:
        through_proxy.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=2000)
    direct = httpx.post(
        f"{pair.decode}/v1/chat/completions",
        json={"model": MODEL, "messages": MESSAGES, "max_tokens": 2000},
        trust_env=False,
    )
    assert error.value.response.json() == direct.json()

    with pytest.raises(openai.NotFoundError):
        through_proxy.chat.completions.create(model="another", messages=MESSAGES)


def test_parameters_that_would_kill_an_engine_do_not_reach_it(pair: Pair, through_proxy: openai.OpenAI):
    answer = through_proxy.chat.completions.with_raw_response.create(
        messages=MESSAGES, extra_body={"kv_transfer_params": {"do_remote_prefill": True}}, **GREEDY
    )
    assert answer.headers["x-duet-path"] == "pd"
    assert answer.parse().choices[0].message.content
    assert httpx.get(f"{pair.decode}/health", trust_env=False).status_code == 200


def test_what_pd_cannot_do_is_served_by_one_engine_and_says_so(through_proxy: openai.OpenAI):
    answer = through_proxy.chat.completions.with_raw_response.create(
        model=MODEL, messages=MESSAGES, n=2, max_tokens=4, seed=1
    )

    assert answer.headers["x-duet-path"] == "aggregated"
    assert answer.headers["x-duet-bypass"]
    assert len(answer.parse().choices) == 2
