"""Routes that are passed on to one engine."""

import gzip
import json

import httpx
import pytest

from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.raw_engine import RawEngine


async def test_a_request_reaches_one_engine_as_it_is(duet):
    body = gzip.compress(b"anything")
    headers = {
        "content-type": "multipart/form-data; boundary=x",
        "content-encoding": "gzip",
        "authorization": "Bearer k",
        "x-request-id": "mine",
        "connection": "x-of-this-connection",
        "x-of-this-connection": "1",
    }
    answer = await duet.client.put("/echo?a=1&b=%2F", content=body, headers=headers)

    assert answer.status_code == 200
    assert answer.content == body
    assert answer.headers["x-request-id"] == "mine"
    assert answer.headers["x-duet-decode"] == "decode-0"
    (seen,) = duet.decode.echoed
    assert (seen.method, seen.path, seen.body) == ("PUT", "/echo?a=1&b=%2F", body)
    assert seen.header("content-type") == headers["content-type"]
    assert seen.header("content-encoding") == "gzip"
    assert seen.header("authorization") == "Bearer k"
    assert seen.header("x-of-this-connection") is None
    assert seen.header("x-request-id").startswith("mine-")
    await duet.idle()


async def test_an_answer_comes_with_its_own_headers_and_bytes(duet):
    duet.decode.faults.append(Fault(headers={"x-of-the-engine": "yes"}, piece=3))
    answer = await duet.client.post("/echo", content=b"0123456789", headers={"content-type": "audio/wav"})
    assert answer.content == b"0123456789"
    assert (answer.headers["content-type"], answer.headers["x-of-the-engine"]) == ("audio/wav", "yes")
    assert (answer.headers["x-duet-path"], answer.headers["x-duet-bypass"]) == ("aggregated", "route")


@pytest.mark.parametrize("key", ['"kv_transfer_params"', '"kv\\u005ftransfer_params"'])
async def test_kv_parameters_of_a_client_reach_no_engine_on_any_route(duet, key):
    raw = f'{{"input": "x", {key}: {{"do_remote_prefill": true}}}}'
    answer = await duet.client.post("/echo", content=raw, headers={"content-type": "application/json"})
    assert answer.json() == {"input": "x"}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"vllm_xargs": {"kv_transfer_params": "x", "a": 1}}, {"vllm_xargs": {"a": 1}}),
        ({"sampling_params": {"extra_args": {"kv_transfer_params": {}}}}, {"sampling_params": {"extra_args": {}}}),
        (
            {"tools": [{"kv_transfer_params": 1}], "sampling_params": 1},
            {"tools": [{"kv_transfer_params": 1}], "sampling_params": 1},
        ),
    ],
)
async def test_nor_do_they_where_engines_keep_their_extra_arguments(duet, given, left):
    assert (await duet.client.post("/echo", json=given)).json() == left


async def test_json_without_them_is_not_written_anew(duet):
    raw = b'{"temperature": 0.70,  "big": 12345678901234567890123}'
    answer = await duet.client.post("/echo", content=raw, headers={"content-type": "application/json"})
    assert answer.content == raw


@pytest.mark.parametrize(
    "path",
    [
        *("/sleep?level=1", "/collective_rpc", "/v1/load_lora_adapter", "/reset_prefix_cache"),
        *("/%73leep", "/sleep/", "/%2fsleep", "/sleep%0A", "/metrics/", "/metrics%0A", "/metrics_of_the_engine"),
    ],
)
async def test_routes_that_operate_an_engine_are_not_for_clients(duet, path):
    answer = await duet.client.post(path, json={})
    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "PermissionDeniedError"


async def test_an_answer_that_breaks_off_does_not_look_complete(duet):
    duet.decode.faults.append(Fault(piece=3, cut_after=6))
    with pytest.raises(httpx.RemoteProtocolError):
        await duet.client.post("/echo", content=b"0123456789")
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0", kind="cut") == 1
    await duet.idle()


async def test_what_was_not_sent_goes_to_the_next_engine(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines)
    await engines[1].stop()
    assert (await duet.client.post("/echo", content=b"x")).headers["x-duet-decode"] == "decode-1"
    assert (await duet.client.get("/v1/models")).headers["x-duet-decode"] == "decode-1"
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1


async def test_work_that_may_have_been_done_is_not_sent_to_another_engine_and_a_question_is(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines)
    for engine in engines[1:]:
        engine.faults.extend([Fault(drop=True)] * 4)
    assert (await duet.client.post("/echo", content=b"x")).status_code == 502
    assert sum(bool(engine.echoed) for engine in engines) == 1
    assert (await duet.client.get("/echo")).headers["x-duet-decode"] == "prefill-0"


async def test_without_any_engine_it_is_unavailable(start):
    engine = FakeEngine("aggregated")
    engine.health = 503
    duet = await start(engines=[engine])
    answer = await duet.client.get("/version")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert json.loads(answer.content)["error"]["type"] == "ServiceUnavailableError"


def answering(raw: bytes):
    """An engine's script."""

    async def script(reader, writer):
        writer.write(raw)

    return script


async def test_a_redirect_to_the_engines_own_address_leads_to_the_proxy(start):
    engine = RawEngine(answering(b""))
    duet = await start(engines=[engine])
    engine.script = answering(
        f"HTTP/1.1 307 Temporary Redirect\r\nlocation: {engine.url}/v1/models\r\ncontent-length: 0\r\n\r\n".encode()
    )
    answer = await duet.client.get("/v1/models/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/v1/models")
    assert b"GET /v1/models/ HTTP/1.1" in engine.head


async def test_an_answer_to_head_has_headers_and_no_body(start):
    engine = RawEngine(answering(b"HTTP/1.1 405 Method Not Allowed\r\nallow: GET\r\ncontent-length: 31\r\n\r\n"))
    duet = await start(engines=[engine])
    answer = await duet.client.head("/v1/models")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "GET", b"")


async def test_a_browsers_preflight_is_the_engines_to_answer(duet):
    headers = {"origin": "http://x", "access-control-request-method": "POST"}
    await duet.client.options("/v1/chat/completions", headers=headers)
    assert (await duet.client.options("/echo", headers=headers)).status_code == 200
    assert duet.decode.echoed[0].method == "OPTIONS"
    assert duet.decode.echoed[0].header("access-control-request-method") == "POST"
