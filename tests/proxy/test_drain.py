"""A proxy that is told to stop."""

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import pytest

from proxy.config import ProxyConfig
from proxy.settings import Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import topology_of
from tests.proxy.program import running

STREAMED = {"model": "fake", "prompt": "one two", "max_tokens": 5, "stream": True}


def config_of(prefill, decode, drain: float, linger: float) -> ProxyConfig:
    return ProxyConfig(topology_of([prefill, decode]), Settings(drain=drain, linger=linger))


@pytest.fixture
def start(tmp_path):
    """Starts the program before a prefill and a decode engine."""

    @asynccontextmanager
    async def begin(drain: float, linger: float = 0):
        async with (
            FakeEngine("prefill") as prefill,
            FakeEngine("decode") as decode,
            running(
                ProxyConfig(topology_of([prefill, decode]), Settings(drain=drain, linger=linger)), tmp_path
            ) as program,
        ):
            yield program, decode

    return begin


@asynccontextmanager
async def draining(program, decode, gate):
    """A stream of which the first event has come, and then SIGTERM."""
    decode.faults.append(Fault(gate=gate))
    gate.release()
    async with program.client.stream("POST", "/v1/completions", json=STREAMED) as answer:
        events = answer.aiter_raw()
        await anext(events)
        program.signal(signal.SIGTERM)
        await program.said(r"asked to stop: running requests \(1\) may go on")
        yield events


async def test_a_running_stream_is_finished_while_new_work_is_refused_by_an_answer(start):
    gate = asyncio.Semaphore(0)
    async with start(drain=60) as (program, decode):
        async with draining(program, decode, gate) as events:
            state = await program.client.get("/ready")
            assert (state.status_code, state.json()["ready"], state.json()["draining"]) == (503, False, True)
            assert (await program.client.get("/health")).status_code == 200
            for path in ("/v1/completions", "/echo"):
                refused = await program.client.post(path, json={"model": "fake", "prompt": "x"})
                assert refused.status_code == 503
                assert refused.json()["error"]["type"] == "ServiceUnavailableError"
                assert refused.headers["retry-after"]
                assert refused.headers["connection"] == "close"
            for _ in range(20):
                gate.release()
            rest = b"".join([chunk async for chunk in events])
        assert rest.endswith(b"data: [DONE]\n\n")
        assert await program.end() == 0
    assert "no request is running any more" in program.log
    assert "Traceback" not in program.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_without_a_request_it_ends_at_once(start, number):
    async with start(drain=3600) as (program, _):
        program.signal(number)
        assert await program.end() == 0


async def test_while_balancers_notice_new_work_is_served_on_connections_that_end_with_it(start):
    async with start(drain=0, linger=3600) as (program, _):
        body = {"model": "fake", "prompt": "one two", "max_tokens": 2}
        assert "connection" not in (await program.client.post("/v1/completions", json=body)).headers
        program.signal(signal.SIGTERM)
        await program.said("asked to stop: serving what comes for 3600 s")
        for _ in range(3):
            answer = await program.client.post("/v1/completions", json=body)
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        state = await program.client.get("/ready")
        assert (state.status_code, state.json()["draining"]) == (503, True)
        program.signal(signal.SIGTERM)
        assert await program.end() == 0


async def test_after_that_new_work_is_refused(start):
    gate = asyncio.Semaphore(0)
    async with start(drain=60, linger=0.1) as (program, decode), draining(program, decode, gate) as events:
        refused = await program.client.post("/v1/completions", json={"model": "fake", "prompt": "x"})
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        for _ in range(20):
            gate.release()
        assert b"".join([chunk async for chunk in events]).endswith(b"data: [DONE]\n\n")


async def test_what_still_runs_when_the_time_is_up_is_broken_off_in_the_stream(start):
    async with start(drain=0) as (program, decode):
        async with draining(program, decode, asyncio.Semaphore(0)) as events:
            rest = b"".join([chunk async for chunk in events])
        assert await program.end() == 0
    last = rest.removesuffix(b"\n\n").rpartition(b"data: ")[2]
    assert json.loads(last)["error"]["code"] == 503
    assert b"[DONE]" not in rest
    assert "status=200 path=pd prefill=prefill-0 decode=decode-0 bypass=- failure=ShuttingDown" in program.log
    assert "Traceback" not in program.log


async def test_a_second_signal_ends_it_without_waiting(start):
    async with start(drain=3600) as (program, decode):
        async with draining(program, decode, asyncio.Semaphore(0)) as events:
            program.signal(signal.SIGTERM)
            assert b'"error"' in b"".join([chunk async for chunk in events])
        assert await program.end() == 0


async def test_a_request_that_waits_for_its_answer_when_the_time_is_up_gets_503(start):
    async with start(drain=0) as (program, decode):
        decode.faults.append(Fault(hang=True))
        asking = asyncio.create_task(program.client.post("/v1/completions", json=STREAMED))
        await decode.saw()
        program.signal(signal.SIGTERM)
        answer = await asking
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "broken off" in answer.json()["error"]["message"]
        assert await program.end() == 0


async def test_a_body_that_is_still_coming_when_the_time_is_up_gets_503(start):
    async with start(drain=0) as (program, _):
        reader, writer = await asyncio.open_connection(program.client.base_url.host, program.client.base_url.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n")
        assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        program.signal(signal.SIGTERM)
        assert b" 503 " in await reader.readline()
        writer.close()
        assert await program.end() == 0


async def test_a_client_that_does_not_read_holds_nothing_up(start):
    async with start(drain=0) as (program, decode):
        text = "x" * 20_000_000  # more than the sockets' buffers hold
        decode.faults.append(Fault(first_event=b'data: {"choices":[{"index":0,"text":"%b"}]}\n\n' % text.encode()))
        async with program.client.stream("POST", "/v1/completions", json=STREAMED) as answer:
            assert answer.status_code == 200
            program.signal(signal.SIGTERM)
            assert await program.end() == 0
    assert "failure=ShuttingDown" in program.log
    assert "Traceback" not in program.log
