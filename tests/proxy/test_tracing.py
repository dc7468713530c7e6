"""Spans of requests, as a collector on a real socket gets them."""

import asyncio
import logging
import signal
import sys

import httpx
import pytest

from proxy.config import ConfigError, ProxyConfig
from proxy.endpoint import Endpoint
from proxy.headers import RequestId
from proxy.record import Record
from proxy.settings import FailurePolicy, Settings, Tracing
from proxy.tracing import Tracer, tracer
from tests.fakes.collector import Collector
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import topology_of
from tests.proxy.program import running
from tests.proxy.test_disconnects import leave_while_waiting

TEXT = {"model": "fake", "prompt": "a secret prompt", "max_tokens": 5}
ROOT = "POST /v1/completions"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """The library's own variable: milliseconds between two posts."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")


@pytest.fixture
async def collector():
    async with Collector() as running:
        yield running


@pytest.fixture
async def duet(collector, start):
    return await start(settings=Settings(tracing=Tracing(collector.url)))


def names(tree: dict) -> dict[str, int]:
    return {name: len(spans) for name, spans in tree.items()}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_through_a_pair_is_a_tree_of_both_legs_and_the_hand_over(duet, collector, stream):
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": stream})
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "prefill": 1, "kv hand-over": 1, "decode": 1}
    (root,), (prefill,), (hand_over,), (decode,) = tree.values()
    assert {span.trace for span in collector.spans} == {root.trace}
    assert {span.service for span in collector.spans} == {"duet"}
    assert [span.kind for span in (root, prefill, hand_over, decode)] == ["server", "client", "internal", "client"]
    assert root.parent == ""
    assert root.attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/completions",
        "http.response.status_code": 200,
        "duet.request_id": answer.headers["x-request-id"],
        "duet.path": "pd",
        "duet.prefill": "prefill-0",
        "duet.decode": "decode-0",
    }
    assert prefill.attributes == {"duet.instance": "prefill-0", "http.response.status_code": 200}
    assert decode.attributes == {"duet.instance": "decode-0", "http.response.status_code": 200}
    assert root.start <= prefill.start <= prefill.end <= hand_over.start <= decode.start
    assert decode.start <= decode.events["first byte"] <= hand_over.end <= decode.end <= root.end
    assert [span.error for span in collector.spans] == [None] * 4
    assert all(b"secret" not in seen.body for seen in collector.seen)


async def test_a_stream_lasts_as_long_as_its_events_come(duet, collector):
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    async with duet.client.stream("POST", "/v1/completions", json={**TEXT, "stream": True}) as answer:
        events = answer.aiter_raw()
        await anext(events)
        await collector.until(lambda: {span.name for span in collector.spans} == {"prefill", "kv hand-over"})
        for _ in range(20):
            gate.release()
        async for _ in events:
            pass
    (decode,) = (await collector.request())["decode"]
    assert "first byte" in decode.events


async def test_both_engines_continue_the_trace_of_the_client(duet, collector):
    headers = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "tenant=a"}
    await duet.client.post("/v1/completions", json=TEXT, headers=headers)
    tree = await collector.request()
    assert (tree[ROOT][0].trace, tree[ROOT][0].parent) == (TRACE, CALLER)
    for engine, (leg,) in ((duet.prefill, tree["prefill"]), (duet.decode, tree["decode"])):
        (seen,) = engine.seen
        carried = [header for header in seen.headers if header[0] in {*headers}]
        assert sorted(carried) == [
            ("baggage", "tenant=a"),
            ("traceparent", f"00-{TRACE}-{leg.id}-01"),
            ("tracestate", "vendor=1"),
        ]


@pytest.mark.parametrize("given", ["", "00-0-0-01", "x" * 5000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "\xff"])
async def test_what_is_no_trace_context_begins_a_new_trace(duet, collector, given):
    answer = await duet.client.post("/v1/completions", json=TEXT, headers=[(b"traceparent", given.encode("latin-1"))])
    assert answer.status_code == 200
    (root,) = (await collector.request())[ROOT]
    assert root.parent == ""
    assert duet.prefill.seen[0].header("traceparent").startswith(f"00-{root.trace}-")


async def test_a_client_that_does_not_trace_is_not_traced(duet, collector):
    await duet.client.post("/v1/completions", json=TEXT, headers={"traceparent": PARENT[:-1] + "0"})
    assert duet.decode.seen[0].header("traceparent").startswith(f"00-{TRACE}-")
    assert duet.decode.seen[0].header("traceparent").endswith("-00")
    await duet.client.post("/v1/completions", json=TEXT)
    assert (await collector.request())[ROOT][0].trace != TRACE
    assert len(collector.servers) == 1


async def test_a_ratio_of_zero_traces_only_those_whose_client_does(collector, start):
    duet = await start(settings=Settings(tracing=Tracing(collector.url, "mine", sample_ratio=0.0)))
    await duet.client.post("/v1/completions", json=TEXT)
    await duet.client.post("/v1/completions", json=TEXT, headers={"traceparent": PARENT})
    (root,) = (await collector.request())[ROOT]
    assert (root.trace, root.service) == (TRACE, "mine")
    assert len(collector.servers) == 1


async def test_a_bypass_is_one_leg_and_says_why(duet, collector):
    await duet.client.post("/v1/completions", json={**TEXT, "n": 2})
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "aggregated": 1}
    assert tree[ROOT][0].attributes["duet.bypass"] == "several_choices"
    assert tree["aggregated"][0].attributes["duet.instance"] == "decode-0"
    assert "duet.prefill" not in tree[ROOT][0].attributes


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=500), ("error", 500)),
        (Fault(status=503), ("error", 503)),
        (Fault(cut_after=1), ("cut", None)),
    ],
)
async def test_a_failed_prefill_and_what_was_done_instead_are_both_there(duet, collector, fault, said):
    duet.prefill.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.headers["x-duet-bypass"] == "prefill_failed"
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "prefill": 1, "aggregated": 1}
    (prefill,), (aggregated,), (root,) = tree["prefill"], tree["aggregated"], tree[ROOT]
    assert (prefill.attributes["error.type"], prefill.attributes.get("http.response.status_code")) == said
    assert prefill.error.startswith("prefill-0: ")
    assert (aggregated.error, root.error) == (None, None)
    assert root.attributes["duet.bypass"] == "prefill_failed"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_decode_that_cannot_use_the_kv_and_its_second_try_are_both_there(duet, collector, stream):
    duet.decode.kv_fails = True
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": stream})
    assert answer.headers["x-duet-bypass"] == "decode_failed"
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "prefill": 1, "kv hand-over": 1, "decode": 1, "aggregated": 1}
    assert tree["decode"][0].attributes["error.type"] == "error"
    assert (tree["kv hand-over"][0].error, tree[ROOT][0].error) == ("decode_failed", None)


async def test_each_pair_that_is_tried_is_there(collector, start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode")]
    settings = Settings(tracing=Tracing(collector.url))
    duet = await start(engines=engines, policy=FailurePolicy.RETRY, settings=settings)
    engines[0].faults.append(Fault(status=500))
    engines[1].faults.append(Fault(status=500))
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 500
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "prefill": 2}
    assert {span.attributes["duet.instance"] for span in tree["prefill"]} == {"prefill-0", "prefill-1"}
    assert tree[ROOT][0].error == "error"


async def test_kv_that_a_second_decode_takes_is_one_hand_over(collector, start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, settings=Settings(tracing=Tracing(collector.url)))
    await engines[1].stop()
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-decode"] == "decode-1"
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "prefill": 1, "kv hand-over": 1, "decode": 2}
    first, second = tree["decode"]
    assert (first.attributes["error.type"], second.error) == ("unreachable", None)
    assert tree["kv hand-over"][0].error is None


async def test_a_client_that_leaves_ends_the_spans_and_is_nobodys_fault(duet, collector):
    duet.decode.faults.append(Fault(hang=True))
    await leave_while_waiting(duet, TEXT, duet.decode)
    tree = await collector.request()
    assert names(tree) == {ROOT: 1, "prefill": 1, "kv hand-over": 1, "decode": 1}
    root, decode = tree[ROOT][0], tree["decode"][0]
    assert (root.attributes["http.response.status_code"], root.attributes["duet.failure"]) == (499, "ClientGone")
    assert (decode.attributes["error.type"], decode.error, root.error) == ("CancelledError", None, None)
    assert tree["kv hand-over"][0].error == "ClientGone"


async def test_a_client_that_leaves_its_stream_ends_the_span_of_decode(duet, collector):
    duet.decode.faults.append(Fault(stall_after=2))
    async with duet.client.stream("POST", "/v1/completions", json={**TEXT, "stream": True}) as answer:
        await anext(answer.aiter_raw())
    tree = await collector.request()
    assert (tree["decode"][0].attributes["error.type"], tree["decode"][0].error) == ("ClientGone", None)
    assert tree[ROOT][0].attributes["http.response.status_code"] == 499


async def test_a_stream_that_breaks_off_is_a_failed_request(duet, collector):
    duet.decode.faults.append(Fault(cut_after=2))
    await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    tree = await collector.request()
    assert (tree[ROOT][0].attributes["http.response.status_code"], tree[ROOT][0].error) == (200, "cut")
    assert tree["decode"][0].attributes["error.type"] == "cut"


async def test_what_the_proxy_refuses_has_no_legs(duet, collector):
    await duet.client.post("/v1/completions", content=b"{", headers={"content-type": "application/json"})
    tree = await collector.request()
    assert names(tree) == {ROOT: 1}
    assert tree[ROOT][0].attributes["duet.failure"] == "BadRequest"


async def test_a_collector_that_is_away_costs_one_line_and_no_request(collector, start, caplog):
    caplog.set_level(logging.INFO)
    duet = await start(settings=Settings(tracing=Tracing(collector.url)))
    collector.status = 400
    for number in range(1, 6):
        assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
        await collector.until(lambda number=number: len(collector.seen) >= number)
    collector.status = 200

    for number in (1, 2):  # the second is sent when the thread has said what it had to say of the first
        await duet.client.post("/v1/completions", json=TEXT)
        await collector.until(lambda number=number: len(collector.servers) >= number)
    lines = [record.getMessage() for record in caplog.records if "collector" in record.getMessage()]
    assert len(lines) == 2
    assert lines[0].startswith(f"the collector at {collector.url}/v1/traces takes no spans, ")
    assert "400" in lines[0]
    assert lines[1].startswith(f"the collector at {collector.url}/v1/traces takes spans again; ")


def one_request(made: Tracer | None) -> Tracer:
    assert made is not None
    made.begin(Record(RequestId("a", "b"), Endpoint.COMPLETIONS), "/v1/completions", []).end(200)
    return made


async def test_a_collector_that_never_answers_holds_no_end_up(collector, caplog, monkeypatch):
    monkeypatch.setattr("proxy.spans.LAST_SPANS", 0.05)
    collector.hangs = True
    made = one_request(tracer(Tracing(collector.url)))
    await collector.until(lambda: bool(collector.seen))
    await made.aclose()
    assert "the last spans could not be sent within 0.05 s and are lost" in caplog.text


async def test_the_end_sends_what_is_left(collector, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    made = one_request(tracer(Tracing(collector.url + "/v1/traces/")))
    assert collector.spans == []
    await made.aclose()
    assert [span.name for span in collector.spans] == [ROOT]


async def test_each_worker_sends_its_own_and_its_last_before_it_ends(collector, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        settings = Settings(workers=2, tracing=Tracing(collector.url))
        async with running(ProxyConfig(topology_of([prefill, decode]), settings), tmp_path) as program:
            await program.said("listening on")
            for _ in range(20):
                async with httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60) as client:
                    assert (await client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"
            assert collector.spans == []
            program.signal(signal.SIGTERM)
            assert await program.end() == 0
    assert len(collector.servers) == 20
    assert len(collector.spans) == 80


def test_without_the_packages_the_start_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "proxy.spans", raising=False)
    with pytest.raises(ConfigError, match=r"proxy\.tracing needs packages.*duet-serve\[tracing\]"):
        tracer(Tracing("http://127.0.0.1:4318"))
