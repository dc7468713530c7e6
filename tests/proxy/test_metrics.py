"""What requests leave behind in ``/metrics``."""

import asyncio

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from proxy.settings import Admission, Canary, FailurePolicy, Settings, Tracing
from tests.fakes.collector import Collector
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
CHAT = {"model": "fake", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 5}
MESSAGE = CHAT
RESPONSE = {"model": "fake", "input": "one two three", "max_output_tokens": 5}
WITH_USAGE = {"stream_options": {"include_usage": True}}
TPOT = "duet_time_per_output_token_seconds_count"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/completions", TEXT | WITH_USAGE),
        ("/v1/chat/completions", CHAT | WITH_USAGE),
        ("/v1/responses", RESPONSE),
        ("/v1/messages", MESSAGE),
    ],
)
async def test_tokens_are_counted_as_the_answer_tells_them(duet, route, body, stream):
    if not stream:
        body = {key: value for key, value in body.items() if key != "stream_options"}
    answer = await duet.client.post(route, json=body | {"stream": stream})
    assert answer.status_code == 200
    await duet.idle()
    served = {"path": "pd", "model": "fake"}
    assert await duet.metric("duet_completion_tokens_total", **served) == 5
    assert await duet.metric("duet_prompt_tokens_total", **served) >= 3
    assert await duet.metric("duet_usage_unknown_total") == 0
    assert await duet.metric("duet_requests_total", outcome="ok", **served) == 1
    assert await duet.metric("duet_request_duration_seconds_count", **served) == 1
    assert await duet.metric("duet_ttft_seconds_count", **served) == stream
    assert await duet.metric(TPOT, counted="tokens") == stream


async def test_a_stream_that_tells_no_tokens_is_timed_by_its_events_and_says_so(duet):
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    async with duet.client.stream("POST", "/v1/completions", json=TEXT | {"stream": True}) as answer:
        chunks = answer.aiter_raw()
        await anext(chunks)
        for _ in range(20):
            gate.release()
        assert [chunk async for chunk in chunks]
    await eventually(lambda: duet.metric(TPOT, counted="events"), 1)
    assert await duet.metric("duet_longest_pause_seconds_count", path="pd", model="fake") == 1
    assert await duet.metric(TPOT, counted="tokens") == 0
    assert await duet.metric("duet_usage_unknown_total") == 1


@pytest.mark.parametrize("more", [{"n": 2}, {"prompt": ["one two", "three"]}])
async def test_of_several_choices_no_time_per_token_is_counted(duet, more):
    await duet.client.post("/v1/completions", json=TEXT | {"stream": True} | WITH_USAGE | more)
    await duet.idle()
    assert await duet.metric("duet_completion_tokens_total") == 10
    assert await duet.metric(TPOT) == 0


async def test_a_model_that_nobody_serves_is_other_and_one_that_is_not_named_is_the_only_one(duet):
    await duet.client.post("/v1/completions", json=TEXT | {"model": "a secret name"})
    await duet.client.post("/v1/completions", json=TEXT | {"model": ["fake"]})
    await duet.client.post("/v1/completions", json={"prompt": "one", "max_tokens": 1})
    await duet.client.post("/v1/completions", content=b"{")
    assert await duet.metric("duet_requests_total", model="other") == 2
    assert await duet.metric("duet_requests_total", model="fake") == 1
    assert await duet.metric("duet_requests_total", model="none", outcome="rejected") == 1
    assert "secret" not in (await duet.client.get("/metrics")).text


async def test_an_adapter_is_a_model_of_its_own(start):
    engine = FakeEngine()
    engine.adapters = {"french": "/adapters/french"}
    duet = await start(engines=[engine])
    await duet.client.post("/v1/completions", json=TEXT | {"model": "french"})
    assert await duet.metric("duet_requests_total", model="french") == 1


@pytest.mark.parametrize(
    ("fault", "stream", "outcome"),
    [
        (Fault(status=400), False, "rejected"),
        (Fault(status=500), False, "failed"),
        (Fault(cut_after=2), True, "broken_off"),
        (Fault(ending=Ending("error", after=2)), True, "broken_off"),
    ],
)
async def test_an_outcome_says_how_a_request_ended(start, fault, stream, outcome):
    engine = FakeEngine()
    engine.faults.append(fault)
    duet = await start(engines=[engine])
    await duet.client.post("/v1/completions", json=TEXT | {"stream": stream})
    await duet.idle()
    assert await duet.metric("duet_requests_total", outcome=outcome) == 1
    assert await duet.metric(TPOT) == 0


@pytest.mark.parametrize(
    ("role", "fault", "phase"),
    [
        ("prefill", Fault(hang=True), "prefill"),
        ("decode", Fault(hang=True), "first_event"),
    ],
)
async def test_who_leaves_is_counted_by_what_was_waited_for(duet, role, fault, phase):
    engine = duet.prefill if role == "prefill" else duet.decode
    engine.faults.append(fault)
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
    await engine.saw()
    asking.cancel()
    await asyncio.wait([asking])
    await eventually(lambda: duet.metric("duet_client_disconnects_total", phase=phase), 1)
    assert await duet.metric("duet_requests_total", outcome="left") == 1


async def test_who_leaves_in_the_middle_of_an_answer_or_in_the_queue_is_told_apart(start):
    engine = FakeEngine()
    engine.faults.append(Fault(stall_after=1))
    duet = await start(engines=[engine], settings=Settings(admission=Admission(concurrency=1)))
    async with duet.client.stream("POST", "/v1/completions", json=TEXT | {"stream": True}) as answer:
        chunks = answer.aiter_raw()
        await anext(chunks)
        asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
        await eventually(lambda: duet.metric("duet_waiting"), 1)
        assert await duet.metric("duet_admitted") == 1
        assert await duet.metric("duet_held_bytes") > 0
        asking.cancel()
        await eventually(lambda: duet.metric("duet_client_disconnects_total", phase="queue"), 1)
    await eventually(lambda: duet.metric("duet_client_disconnects_total", phase="answer"), 1)
    assert await duet.metric("duet_admission_wait_seconds_count") == 1
    assert await duet.metric("duet_held_bytes") == 0
    assert await duet.metric("duet_draining") == 0


async def test_each_further_try_is_counted_by_who_was_tried(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, policy=FailurePolicy.RETRY)
    engines[0].faults.append(Fault(status=503))
    await duet.client.post("/v1/completions", json=TEXT)
    assert await duet.metric("duet_retries_total", step="pair") == 1
    await engines[2].stop()
    for _ in range(2):
        await duet.client.post("/v1/completions", json=TEXT)
    assert await duet.metric("duet_retries_total", step="decode") == 1
    assert await duet.metric("duet_breaker_opened_total", engine="decode-0") == 1


async def test_a_pair_that_fails_is_counted_as_suspended_and_its_verdict_is_shown(start):
    duet = await start(canary=Canary())
    pair = {"prefill": "prefill-0", "decode": "decode-0"}
    assert await duet.metric("duet_pair_verdict", verdict="proven", **pair) == 1
    assert await duet.metric("duet_pair_verdict", verdict="failed", **pair) == 0
    assert 0 <= await duet.metric("duet_pair_proof_age_seconds", **pair) < 60
    duet.decode.kv_fails = True
    await duet.client.post("/v1/completions", json=TEXT)
    assert await duet.metric("duet_pair_suspended_total", **pair) == 1
    await eventually(lambda: duet.metric("duet_pair_verdict", verdict="proven", **pair), 0)


@pytest.mark.parametrize("ratio", [1.0, 0.0])
async def test_openmetrics_has_the_trace_of_a_request_that_is_traced(start, ratio):
    async with Collector() as collector:
        duet = await start(settings=Settings(tracing=Tracing(collector.url, sample_ratio=ratio)))
        await duet.client.post("/v1/completions", json=TEXT | {"stream": True})
        await duet.idle()
        answer = await duet.client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    samples = [each for family in text_string_to_metric_families(answer.text) for each in family.samples]
    traces = {each.name: each.exemplar.labels["trace_id"] for each in samples if each.exemplar is not None}
    assert traces.keys() == ({"duet_ttft_seconds_bucket", "duet_request_duration_seconds_bucket"} if ratio else set())
    assert all(len(trace) == 32 for trace in traces.values())


async def test_without_a_wish_the_format_is_prometheus_own(duet):
    answer = await duet.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "_created" not in answer.text
