"""Requests that an engine or the proxy refuses."""

import json

import pytest

from proxy.settings import FailurePolicy
from tests.fakes.engine import Fault

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
BODY = b'{"error":{"message":"no","type":"X","param":"p","code":429},"more":1.0}'
HEADERS = {"retry-after": "7", "content-type": "application/problem+json"}


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429])
@pytest.mark.parametrize("policy", FailurePolicy)
async def test_a_4xx_of_prefill_passes_unchanged_after_one_call(start, status, policy):
    duet = await start(policy=policy)
    duet.prefill.faults.append(Fault(status=status, body=BODY, headers=HEADERS))
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    assert (answer.status_code, answer.content) == (status, BODY)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "7"
    assert (len(duet.prefill.seen), len(duet.decode.seen)) == (1, 0)
    assert await duet.metric("duet_upstream_failures_total") == 0
    assert (await duet.ready())["ready"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_4xx_of_decode_after_prefill_passes_unchanged(duet, stream):
    body = {**TEXT, "max_tokens": 5000, "stream": stream}
    answer = await duet.client.post("/v1/completions", json=body)
    assert answer.status_code == 400
    assert "maximum context length" in answer.json()["error"]["message"]
    assert (len(duet.prefill.seen), len(duet.decode.seen)) == (1, 1)
    assert await duet.metric("duet_upstream_failures_total") == 0


async def test_a_4xx_of_an_engine_that_serves_alone_passes_unchanged(duet):
    duet.decode.faults.append(Fault(status=429, body=BODY, headers=HEADERS))
    answer = await duet.client.post("/v1/completions", json={**TEXT, "n": 2})
    assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (429, BODY, "7")
    assert answer.headers["x-duet-bypass"] == "several_choices"


async def test_options_of_a_stream_without_a_stream_are_refused_by_the_engine(duet):
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream_options": {"include_usage": True}})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "stream_options"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
@pytest.mark.parametrize("extra", [{}, {"n": 2, "temperature": 1}])
async def test_what_any_page_may_send_from_a_browser_is_refused_as_by_an_engine(duet, kind, extra):
    headers = {} if kind is None else {"content-type": kind}
    answer = await duet.client.post("/v1/completions", content=json.dumps(TEXT | extra).encode(), headers=headers)
    assert answer.status_code == 400
    assert "Unsupported Media Type" in answer.json()["error"]["message"]


async def test_json_with_a_charset_is_json(duet):
    headers = {"content-type": "application/json; charset=utf-8"}
    answer = await duet.client.post("/v1/completions", content=json.dumps(TEXT).encode(), headers=headers)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")


async def test_an_unknown_model_is_the_engines_404(duet):
    answer = await duet.client.post("/v1/chat/completions", json={"model": "nope", "messages": [{}]})
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "NotFoundError"
    assert len(duet.decode.seen) == 0


@pytest.mark.parametrize("raw", [b"", b"{bad", b"[1]", b"\xff"])
async def test_a_body_that_is_no_json_object_reaches_no_engine(duet, raw):
    answer = await duet.client.post("/v1/chat/completions", content=raw)
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert duet.prefill.seen == duet.decode.seen == []
    assert await duet.metric("duet_requests_total", endpoint="chat_completions", path="none", status="400") == 1


async def test_an_unknown_route_or_method_gets_the_engines_own_answer(duet):
    answer = await duet.client.post("/v1/nothing", json={})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
    answer = await duet.client.get("/v1/completions")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
