"""Streamed answers, byte by byte."""

import asyncio
import json

import httpx
import openai
import pytest

from proxy.settings import Leg, Timeouts
from tests.fakes.engine import SSE, Fault

CHAT = {"model": "fake", "messages": [{"role": "user", "content": "one two"}], "max_tokens": 8, "stream": True}


def events(text: str) -> list[str]:
    return [event.removeprefix("data: ") for event in text.split("\n\n") if event]


async def test_every_event_is_passed_on_before_the_next_is_made(duet):
    gate = asyncio.Semaphore(0)
    duet.decode.faults.append(Fault(gate=gate))
    count = 0
    for _ in ("the role", "the first token"):  # an answer begins when it is known not to be a failure
        gate.release()
    async with duet.client.stream("POST", "/v1/chat/completions", json=CHAT) as answer:
        assert answer.headers["content-type"] == SSE
        async for _ in answer.aiter_raw():
            count += 1
            gate.release()
    assert count == CHAT["max_tokens"] + 1


@pytest.mark.parametrize("piece", [1, 7, 100_000])
async def test_the_bytes_are_the_engines_however_they_are_cut_up(duet, piece):
    headers = {"x-request-id": "x"}
    duet.decode.faults.extend([Fault(piece=piece), Fault()])
    pieces = (await duet.client.post("/v1/chat/completions", json=CHAT, headers=headers)).text
    plain = (await duet.client.post("/v1/chat/completions", json=CHAT, headers=headers)).text
    assert [{**json.loads(event), "id": ""} for event in events(pieces)[:-1]] == [
        {**json.loads(event), "id": ""} for event in events(plain)[:-1]
    ]
    assert len(pieces) == len(plain)


BROKEN = [(Fault(cut_after=3), 502), (Fault(end_after=3), 502), (Fault(stall_after=3), 504)]


@pytest.mark.parametrize(("fault", "code"), BROKEN)
async def test_a_stream_that_breaks_ends_with_an_error_event_and_without_done(start, fault, code):
    duet = await start(timeouts=Timeouts(decode=Leg(idle=0.5)) if fault.stall_after else None)
    duet.decode.faults.append(fault)
    answer = await duet.client.post("/v1/chat/completions", json=CHAT)
    assert answer.status_code == 200
    received = events(answer.text)
    assert len(received) == 4
    error = json.loads(received[-1])["error"]
    assert error["code"] == code
    assert error["message"].startswith("decode-0: ")
    assert "[DONE]" not in answer.text
    assert '"finish_reason":"' not in answer.text
    assert len(duet.decode.seen) == 1
    await duet.idle()
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1


async def test_an_error_event_does_not_melt_into_half_an_event(duet):
    duet.decode.faults.append(Fault(piece=100, cut_after=3))
    answer = await duet.client.post("/v1/chat/completions", json=CHAT)
    assert json.loads(events(answer.text)[-1])["error"]["code"] == 502


async def test_the_openai_client_raises_on_a_broken_stream(duet):
    duet.decode.faults.append(Fault(cut_after=3))
    async with openai.AsyncOpenAI(base_url=duet.url + "/v1", api_key="k", max_retries=0) as client:
        stream = await client.chat.completions.create(**CHAT)
        with pytest.raises(openai.APIError, match="decode-0"):
            async for _ in stream:
                pass


async def test_time_to_first_token_is_measured(duet):
    await duet.client.post("/v1/chat/completions", json=CHAT)
    await duet.idle()
    assert await duet.metric("duet_ttft_seconds_count", endpoint="chat_completions", path="pd") == 1
    assert await duet.metric("duet_handoff_seconds_count") == 1


async def test_a_head_is_not_sent_before_the_first_event(duet):
    gate = asyncio.Semaphore(0)
    duet.decode.faults.append(Fault(gate=gate))
    request = duet.client.build_request("POST", "/v1/chat/completions", json=CHAT)
    sending = asyncio.create_task(duet.client.send(request, stream=True))
    await duet.decode.saw()
    assert not sending.done()
    for _ in range(20):
        gate.release()
    answer: httpx.Response = await sending
    assert (await answer.aread()).endswith(b"data: [DONE]\n\n")
