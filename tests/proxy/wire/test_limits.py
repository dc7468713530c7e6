"""Servers that are too slow. Time is put forward, so that nothing waits and nothing depends on the machine's speed."""

import asyncio
import socket

import pytest

from proxy.wire.errors import AnswerTimeout, ConnectTimeout, SendTimeout
from tests.proxy.wire.conftest import chunk, chunked, ok, rest_of

on_leaping_loop = pytest.mark.asyncio(loop_factories=["asyncio"])


def leap(seconds: float) -> None:
    """Let time have passed."""
    asyncio.get_running_loop().leap(seconds)


@on_leaping_loop
async def test_a_connection_that_is_never_accepted(ask):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = []
        for _ in range(3):  # the queue holds one or two; what comes then gets no answer
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        asking = asyncio.create_task(ask(f"http://127.0.0.1:{full.getsockname()[1]}", connect=5, first_byte=300))
        await asyncio.sleep(0)
        leap(6)
        with pytest.raises(ConnectTimeout):
            await asking
        for one in waiting:
            one.close()


@on_leaping_loop
async def test_a_handshake_that_never_ends(listen, ask):
    async def script(peer):
        leap(6)
        await peer.until_gone()

    server = await listen(script)
    with pytest.raises(ConnectTimeout):
        await ask(server.url.replace("http://127.0.0.1", "https://localhost"), connect=5, first_byte=300)
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


BEFORE_A_BODY = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nx",
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a head": chunked(),
    "a chunk's size": chunked() + b"5\r\n",
}


@on_leaping_loop
@pytest.mark.parametrize("raw", BEFORE_A_BODY.values(), ids=BEFORE_A_BODY)
async def test_no_first_byte_of_the_body(listen, ask, raw):
    async def script(peer):
        await peer.request()
        await peer.say(raw)
        leap(301)
        await peer.until_gone()

    server = await listen(script)
    with pytest.raises(AnswerTimeout):
        await rest_of(await ask(server.url, first_byte=300, idle=3600))
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


@on_leaping_loop
async def test_signs_of_life_are_no_answer(listen, ask):
    async def script(peer):
        await peer.request()
        while True:
            await peer.say(b"HTTP/1.1 102 Processing\r\n\r\n")
            leap(100)
            await asyncio.sleep(0)

    with pytest.raises(AnswerTimeout):
        await ask((await listen(script)).url, first_byte=300)


@on_leaping_loop
@pytest.mark.parametrize("raw", [chunked(b"x"), chunked(b"x") + b"5\r\n", b"HTTP/1.1 200 OK\r\n\r\nx"])
async def test_silence_within_the_body_has_its_own_limit(listen, ask, raw):
    async def script(peer):
        await peer.request()
        await peer.say(raw)
        await peer.until_gone()

    answer = await ask((await listen(script)).url, first_byte=300, idle=120)
    assert await answer.chunk() == b"x"
    reading = asyncio.create_task(answer.chunk())
    await asyncio.sleep(0)
    leap(121)
    with pytest.raises(AnswerTimeout):
        await reading
    answer.close()


@on_leaping_loop
async def test_a_long_answer_has_no_limit_in_total(listen, ask):
    proceed = asyncio.Semaphore(0)

    async def script(peer):
        await peer.request()
        await peer.say(chunked())
        while True:
            await proceed.acquire()
            await peer.say(chunk(b"x"))

    answer = await ask((await listen(script)).url, first_byte=300, idle=120)
    for _ in range(12):
        reading = asyncio.create_task(answer.chunk())
        await asyncio.sleep(0)
        leap(100)
        proceed.release()
        assert await reading == b"x"
    answer.close()


@on_leaping_loop
async def test_the_time_that_the_reader_takes_is_not_the_servers(listen, ask):
    told = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(chunked(b"x"))
        await told.wait()
        await peer.say(chunk(b"y"))
        await peer.until_gone()

    answer = await ask((await listen(script)).url, first_byte=300, idle=120)
    assert await answer.chunk() == b"x"
    leap(1000)
    for _ in range(3):  # time for a timer to do harm
        await asyncio.sleep(0)
    told.set()
    assert await answer.chunk() == b"y"
    answer.close()


@on_leaping_loop
async def test_a_server_that_stops_taking_the_request(listen, ask):
    async def script(peer):
        await peer.head()
        leap(301)
        await asyncio.Event().wait()

    server = await listen(script)
    with pytest.raises(SendTimeout):
        await ask(server.url, body=b"x" * 64_000_000, first_byte=300)


@on_leaping_loop
async def test_a_limit_of_one_request_is_none_of_the_next_one(listen, ask):
    asked = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(ok())
        await peer.request()
        leap(1000)
        await asked.wait()
        await peer.say(ok())
        await peer.until_gone()

    server = await listen(script)
    await rest_of(await ask(server.url, first_byte=300, idle=120))
    asking = asyncio.create_task(ask(server.url, first_byte=3600, idle=3600))
    await asyncio.sleep(0)
    asked.set()
    assert await rest_of(await asking) == b"fine"
    assert len(server.peers) == 1


async def test_limits_hold_by_the_real_clock_of_either_loop(listen, ask):
    async def script(peer):
        await peer.request()
        await peer.say(ok())
        await peer.until_gone()

    server = await listen(script)
    await rest_of(await ask(server.url))  # so that no connection is made within the short limit
    with pytest.raises(AnswerTimeout):
        await ask(server.url, first_byte=0.03)
