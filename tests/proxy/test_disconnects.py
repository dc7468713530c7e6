"""Clients that leave."""

import asyncio
import json

import pytest

from proxy.disconnect import unless_gone
from proxy.errors import ShuttingDown
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}


async def leave_while_waiting(duet, body: dict, engine: FakeEngine) -> None:
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=body))
    seen = await engine.saw()
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.wait_for(seen.left.wait(), 5)


async def assert_nobody_is_blamed(duet) -> None:
    await duet.idle()
    assert await duet.metric("duet_client_disconnects_total") == 1
    assert await duet.metric("duet_requests_total", status="499") == 1
    assert await duet.metric("duet_upstream_failures_total") == 0
    assert (await duet.ready())["modes"]["pd"]


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_during_prefill_stops_prefill_and_spares_decode(duet, stream):
    duet.prefill.faults.append(Fault(hang=True))
    await leave_while_waiting(duet, {**TEXT, "stream": stream}, duet.prefill)
    await assert_nobody_is_blamed(duet)
    assert duet.decode.seen == []


@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(stall_after=0)])
async def test_leaving_before_the_first_event_stops_decode(duet, fault):
    duet.decode.faults.append(fault)
    await leave_while_waiting(duet, {**TEXT, "stream": True}, duet.decode)
    await assert_nobody_is_blamed(duet)


async def test_leaving_before_a_whole_answer_stops_decode(duet):
    duet.decode.faults.append(Fault(hang=True))
    await leave_while_waiting(duet, TEXT, duet.decode)
    await assert_nobody_is_blamed(duet)


async def test_leaving_while_the_body_is_sent_reaches_no_engine(duet):
    host, port = duet.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
    await writer.drain()
    writer.close()
    await eventually(lambda: duet.metric("duet_requests_total", path="none", status="499"), 1)
    await assert_nobody_is_blamed(duet)
    assert duet.prefill.seen == duet.decode.seen == []


async def test_leaving_in_the_middle_of_a_stream_stops_decode(duet):
    duet.decode.faults.append(Fault(stall_after=2))
    async with duet.client.stream("POST", "/v1/completions", json={**TEXT, "stream": True}) as answer:
        await anext(answer.aiter_raw())
        assert await duet.metric("duet_in_flight", engine="decode-0") == 1
    seen = await duet.decode.saw()
    await asyncio.wait_for(seen.left.wait(), 5)
    await assert_nobody_is_blamed(duet)


async def test_leaving_with_another_request_sent_after_a_stream_stops_decode(duet, caplog):
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    host, port = duet.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps({**TEXT, "max_tokens": 500, "stream": True}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    writer.write(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
    await reader.readuntil(b"data: ")
    writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    await writer.drain()
    writer.transport.abort()
    seen = await duet.decode.saw()
    while not seen.left.is_set():  # the server does not read any more, so it learns it by writing
        gate.release()
        await asyncio.sleep(0)
    await assert_nobody_is_blamed(duet)
    assert "Exception in ASGI application" not in caplog.text


async def test_work_that_ends_as_the_client_leaves_wins():
    moment = asyncio.Event()

    async def receive():
        await moment.wait()
        return {"type": "http.disconnect"}

    async def work():
        await asyncio.sleep(0)  # lets the other one wait first, and so be the first to know
        await moment.wait()
        return "result"

    asyncio.get_running_loop().call_later(0, moment.set)
    assert await unless_gone(work(), receive) == "result"
    await asyncio.sleep(0)  # would raise if the task were cancelled afterwards


async def test_who_is_stopped_by_the_server_is_not_gone():
    async def receive():
        await asyncio.Event().wait()

    task = asyncio.create_task(unless_gone(asyncio.Event().wait(), receive))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(ShuttingDown):
        await task
