"""Requests that go well."""

import asyncio
import json

import openai
import pytest

from tests.fakes.engine import SSE, FakeEngine, Fault

CHAT = {"model": "fake", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 5}
TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5, "min_tokens": 2}
ROUTES = [("/v1/completions", TEXT), ("/v1/chat/completions", CHAT)]
JSON = {"content-type": "application/json"}
HOSTILE = {"do_remote_prefill": True, "remote_host": "203.0.113.7", "remote_block_ids": [[1]]}


@pytest.mark.parametrize(("route", "body"), ROUTES)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_through_pd_equals_the_engines_own(duet, start, route, body, stream):
    body = {**body, "stream": stream}
    alone = await start(engines=[FakeEngine("aggregated")])
    headers = {"x-request-id": "same"}
    through = await duet.client.post(route, json=body, headers=headers)
    expected = await alone.client.post(route, json=body, headers=headers)
    assert through.status_code == expected.status_code == 200
    assert through.headers["content-type"] == (SSE if stream else "application/json")
    assert without_ids(through.text) == without_ids(expected.text)
    assert through.headers["x-duet-path"] == "pd"
    assert through.headers["x-duet-prefill"] == "prefill-0"
    assert through.headers["x-duet-decode"] == "decode-0"
    assert "x-duet-bypass" not in through.headers
    assert expected.headers["x-duet-path"] == "aggregated"
    assert "x-duet-bypass" not in expected.headers


def without_ids(text: str) -> list[str]:
    return [part for part in text.split('"') if "cmpl-" not in part]


async def test_prefill_computes_and_decode_takes_the_kv_over(duet):
    await duet.client.post("/v1/completions", json=TEXT)
    assert duet.prefill.by_source == {"local_compute": 3, "local_cache_hit": 0, "external_kv_transfer": 0}
    assert duet.decode.by_source == {"local_compute": 0, "local_cache_hit": 0, "external_kv_transfer": 3}


@pytest.mark.parametrize(("route", "body"), ROUTES)
@pytest.mark.parametrize("usage", [True, False, None])
async def test_the_usage_chunk_comes_when_the_client_asked_for_it(duet, route, body, usage):
    options = {} if usage is None else {"stream_options": {"include_usage": usage}}
    answer = await duet.client.post(route, json={**body, "stream": True, **options})
    assert ('"usage":{"prompt_tokens"' in answer.text) is bool(usage)
    assert answer.headers["x-duet-path"] == "pd"


async def test_decode_gets_the_clients_bytes(duet):
    raw = b'{ "model":"fake","prompt":"x","temperature":0.70,"seed":18446744073709551615,"zz":1E+2 }'
    await duet.client.post("/v1/completions", content=raw, headers=JSON)
    sent = duet.decode.seen[0].body
    start, end = sent.index(b',"kv_transfer_params"'), sent.rindex(b"}")
    assert sent[:start] + sent[end:] == raw


@pytest.mark.parametrize("extra", [{}, {"n": 2}, {"stream": True}])
async def test_kv_parameters_of_a_client_reach_no_engine(duet, extra):
    answer = await duet.client.post("/v1/completions", json={**TEXT, **extra, "kv_transfer_params": HOSTILE})
    assert answer.status_code == 200
    assert all(b"203.0.113.7" not in seen.body for seen in duet.prefill.seen + duet.decode.seen)


async def test_kv_parameters_of_a_client_do_not_survive_a_failed_prefill(duet):
    duet.prefill.faults.append(Fault(kv=None))
    answer = await duet.client.post("/v1/completions", json={**TEXT, "kv_transfer_params": HOSTILE})
    assert answer.status_code == 200
    assert "kv_transfer_params" not in json.loads(duet.decode.seen[0].body)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"n": 2}, "several_choices"),
        ({"prompt": ["a", "b"]}, "several_prompts"),
        ({"prompt_logprobs": 1}, "prompt_logprobs"),
        ({"echo": True}, "echo"),
        ({"use_beam_search": True}, "beam_search"),
    ],
)
async def test_what_cannot_go_through_pd_is_served_aggregated_and_says_so(duet, extra, reason):
    raw = json.dumps({**TEXT, **extra}).encode()
    answer = await duet.client.post("/v1/completions", content=raw, headers=JSON)
    assert answer.status_code == 200
    assert answer.headers["x-duet-path"] == "aggregated"
    assert answer.headers["x-duet-bypass"] == reason
    assert "x-duet-prefill" not in answer.headers
    assert duet.prefill.seen == []
    assert duet.decode.seen[0].body == raw
    assert await duet.metric("duet_pd_bypassed_total", reason=reason) == 1


async def test_end_to_end_headers_reach_both_legs(duet):
    headers = {"authorization": "Bearer key", "traceparent": "00-a-b-01", "x-tenant": "a", "connection": "close"}
    await duet.client.post("/v1/completions", json=TEXT, headers=headers)
    for engine in (duet.prefill, duet.decode):
        seen = engine.seen[0]
        assert seen.header("authorization") == "Bearer key"
        assert seen.header("traceparent") == "00-a-b-01"
        assert seen.header("x-tenant") == "a"
        assert seen.header("host") == engine.url.removeprefix("http://")
        assert seen.header("content-type") == "application/json"
        assert seen.header("connection") != "close"
        assert [name for name, _ in seen.headers].count("content-length") == 1


async def test_no_authorization_is_invented(duet):
    await duet.client.post("/v1/completions", json=TEXT)
    assert duet.prefill.seen[0].header("authorization") is None


async def test_both_legs_carry_one_unique_id_and_the_client_gets_its_own(duet):
    headers = {"x-request-id": "same-1"}
    answers = await asyncio.gather(*(duet.client.post("/v1/completions", json=TEXT, headers=headers) for _ in range(2)))
    assert {answer.headers["x-request-id"] for answer in answers} == {"same-1"}
    ids = {seen.header("x-request-id") for seen in duet.prefill.seen}
    assert ids == {seen.header("x-request-id") for seen in duet.decode.seen}
    assert len(ids) == 2
    assert all(each.startswith("same-1-") for each in ids)


async def test_a_request_without_id_gets_one(duet):
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.headers["x-request-id"] == duet.decode.seen[0].header("x-request-id")


async def test_requests_are_spread_over_equal_instances(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines)
    for _ in range(4):
        await duet.client.post("/v1/completions", json=TEXT)
    assert [len(engine.seen) for engine in engines] == [2, 2, 2, 2]


async def test_a_burst_is_spread_over_equal_instances(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines)
    for engine in engines[2:]:
        engine.faults.extend(Fault(stall_after=1) for _ in range(3))
    streams = [duet.client.build_request("POST", "/v1/completions", json={**TEXT, "stream": True}) for _ in range(6)]
    answers = await asyncio.gather(*(duet.client.send(request, stream=True) for request in streams))
    assert [len(engine.seen) for engine in engines] == [3, 3, 3, 3]
    await asyncio.gather(*(answer.aclose() for answer in answers))
    await duet.idle()


async def test_the_openai_client_reads_answers_and_streams(duet):
    async with openai.AsyncOpenAI(base_url=duet.url + "/v1", api_key="k", max_retries=0) as client:
        whole = await client.chat.completions.create(**CHAT)
        stream = await client.chat.completions.create(**CHAT, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert whole.choices[0].message.content == text


async def test_both_legs_get_the_same_images_so_that_no_cache_is_taken_for_anothers(duet):
    for image in ("data:image/png;base64,AAAA", "data:image/png;base64,BBBB"):
        parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": image}}]
        body = {"model": "fake", "messages": [{"role": "user", "content": parts}], "max_tokens": 3}
        assert (await duet.client.post("/v1/chat/completions", json=body)).headers["x-duet-path"] == "pd"
        legs = [json.loads(engine.seen[-1].body)["messages"] for engine in (duet.prefill, duet.decode)]
        assert legs == [body["messages"], body["messages"]]
