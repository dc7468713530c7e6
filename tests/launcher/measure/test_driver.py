"""A load against a server on a real socket: what is sent, and what becomes of it."""

import asyncio
import contextlib
import json

import pytest

from launcher.errors import MeasureError
from launcher.measure.driver import drive
from launcher.measure.load import Arrivals, Closed, Open
from launcher.measure.request import Request
from launcher.measure.target import Target
from tests.fakes.engine import FakeEngine, Fault
from tests.launcher.measure.requests import prompts, target
from tests.ports import free_port

ALL_AT_ONCE = Open(Arrivals.CONSTANT, rate=10_000)


async def test_every_request_becomes_a_sample_with_the_engines_own_count_of_tokens():
    async with FakeEngine() as engine:
        samples = await drive(target(engine), prompts(5), Closed(2))
    assert sorted(each.number for each in samples) == [0, 1, 2, 3, 4]
    for each in samples:
        assert (each.error, each.tokens, each.prompt_tokens, each.finish) == (None, 3, 2, "length")
        assert each.ttft is not None
        assert 0 < each.ttft <= each.total
        assert each.tpot is not None
        assert each.text is None
    bodies = [json.loads(each.body) for each in engine.seen]
    assert {body["model"] for body in bodies} == {engine.model}
    assert all(body["stream"] and body["stream_options"]["include_usage"] for body in bodies)


async def test_a_closed_loop_has_so_many_requests_at_once_and_no_more():
    async with FakeEngine() as engine:
        engine.thawed.clear()
        run = asyncio.ensure_future(drive(target(engine), prompts(7), Closed(3)))
        await engine.saw(3)
        assert engine.running == 3
        engine.thawed.set()
        assert len(await run) == 7
    assert len(engine.seen) == 7


async def test_an_open_loop_does_not_wait_for_answers():
    async with FakeEngine() as engine:
        engine.thawed.clear()
        run = asyncio.ensure_future(drive(target(engine), prompts(6), ALL_AT_ONCE))
        await engine.saw(6)
        assert engine.running == 6
        engine.thawed.set()
        assert len(await run) == 6


async def test_what_is_due_beyond_the_most_at_once_waits_and_is_late():
    async with FakeEngine() as engine:
        engine.thawed.clear()
        load = Open(Arrivals.CONSTANT, rate=10_000, most=2)
        run = asyncio.ensure_future(drive(target(engine), prompts(4), load))
        await engine.saw(2)
        assert engine.running == 2
        engine.thawed.set()
        samples = await run
    assert all(each.sent >= each.due for each in samples)
    assert max(each.sent - each.due for each in samples[2:]) > 0


async def test_a_load_by_time_sends_the_first_requests_again():
    async with FakeEngine() as engine:
        samples = await drive(target(engine), prompts(2), Closed(1), seconds=0.3)
    numbers = [each.number for each in samples]
    assert numbers[:4] == [0, 1, 0, 1]
    assert all(each.sent < 0.3 for each in samples)


async def test_the_times_of_a_trace_are_kept():
    async with FakeEngine() as engine:
        load = Open(Arrivals.TRACE, speed=100)
        samples = await drive(target(engine), prompts(3, times=[5.0, 6.0, 7.5]), load)
    assert [each.due for each in samples] == pytest.approx([0.0, 0.01, 0.025])


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=503), "HTTP 503"),
        (Fault(drop=True), "cut off"),
        (Fault(cut_after=1), "cut off"),
        (Fault(end_after=2), "cut off"),
        (Fault(first_event=b"data: [DONE]\n\n"), "cut off"),
        (Fault(first_event=b"data: {}\n\n"), "not the stream of OpenAI's API"),
        (Fault(first_event=b"data: null\n\n"), "not the stream of OpenAI's API"),
        (Fault(first_event=b'data: {"choices": [7]}\n\n'), "not the stream of OpenAI's API"),
        (Fault(first_event=b'data: {"error": {"message": "no more"}}\n\n'), "an error in the stream"),
    ],
)
async def test_a_failed_request_is_a_sample_that_says_why_and_the_others_go_on(fault: Fault, error: str):
    async with FakeEngine() as engine:
        engine.faults += [Fault(), fault, Fault()]
        samples = await drive(target(engine), prompts(3), Closed(1))
    assert [each.error is None for each in samples] == [True, False, True]
    assert (samples[1].error or "").startswith(error)
    assert samples[1].tpot is None


async def test_texts_are_kept_where_they_are_asked_for():
    async with FakeEngine() as engine:
        first = await drive(target(engine), prompts(2), Closed(2), keep_text=True)
        again = await drive(target(engine), prompts(2), Closed(1), keep_text=True)
    texts = {each.number: each.text for each in first}
    assert all(texts.values())
    assert {each.number: each.text for each in again} == texts


async def test_a_chat_is_measured_from_its_first_text():
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "temperature": 0}
    async with FakeEngine() as engine:
        (sample,) = await drive(
            target(engine), [Request("chat/completions", body, {"x-one": "1"})], Closed(1), keep_text=True
        )
    assert (sample.error, sample.tokens, sample.events) == (None, 4, 4)
    assert engine.seen[0].header("x-one") == "1"


async def test_where_nobody_listens_the_error_names_the_address_and_the_fix():
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(MeasureError, match=rf"{url} cannot be measured \(no connection.*name the address"):
        await drive(Target("nobody", url, "fake"), prompts(2), Closed(1), seconds=60)


async def test_where_a_key_is_missing_it_does_not_go_on_asking():
    async with FakeEngine() as engine:
        engine.instead["/v1/completions"] = (401, b"{}")
        with pytest.raises(MeasureError, match="give a key by --key"):
            await drive(target(engine), prompts(1), Closed(2), seconds=60)


async def test_a_server_that_goes_away_later_is_a_matter_of_samples():
    async with FakeEngine() as engine:
        engine.faults += [Fault(), Fault(status=404), Fault(status=404), Fault(status=404)]
        samples = await drive(target(engine), prompts(5), Closed(1))
    assert [each.error is None for each in samples] == [True, False, False, False, True]


async def test_a_connection_is_used_again():
    opened = 0
    events = b'data: {"choices": [{"text": "a", "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with contextlib.suppress(asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(asked.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                writer.write(head + b"%x\r\n%s\r\n" % (len(events), events))
                await writer.drain()
                writer.write(b"0\r\n\r\n")

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        samples = await drive(Target("raw", url, "m"), prompts(6), Closed(2))
    assert [each.error for each in samples] == [None] * 6
    assert opened == 2


async def test_progress_is_told():
    told = []
    async with FakeEngine() as engine:
        await drive(target(engine), prompts(3), Closed(1), tell=lambda *each: told.append(each))
    assert told == [("measuring", 1, 3), ("measuring", 2, 3), ("measuring", 3, 3)]


async def test_without_requests_it_says_so():
    with pytest.raises(MeasureError, match="workload is empty"):
        await drive(Target("x", "http://127.0.0.1:1", "m"), [], Closed(1))
