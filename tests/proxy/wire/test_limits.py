"""Servers that are too slow."""

import asyncio
import socket

import pytest

from proxy.wire.client import Client
from proxy.wire.errors import AnswerTimeout, ConnectTimeout, SendTimeout
from tests.proxy.wire.conftest import chunk, chunked, ok, rest_of

SHORT = 0.05


async def test_a_connection_that_is_never_accepted():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = []
        for _ in range(3):  # the queue holds one or two; what comes then gets no answer
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        client = Client()
        with pytest.raises(ConnectTimeout):
            await client.open(
                f"http://127.0.0.1:{full.getsockname()[1]}", "GET", "/", [], None, connect=SHORT, first_byte=9, idle=9
            )
        await client.aclose()
        for one in waiting:
            one.close()


async def test_a_handshake_that_never_ends(listen, ask):
    async def stalls(peer):
        await peer.until_gone()

    server = await listen(stalls)
    with pytest.raises(ConnectTimeout):
        await ask(server.url.replace("http://127.0.0.1", "https://localhost"), connect=SHORT)
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


BEFORE_A_BODY = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nx",
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a head": chunked(),
    "a chunk's size": chunked() + b"5\r\n",
}


@pytest.mark.parametrize("raw", BEFORE_A_BODY.values(), ids=BEFORE_A_BODY)
async def test_no_first_byte_of_the_body(listen, ask, raw):
    async def script(peer):
        await peer.request()
        await peer.say(raw)
        await peer.until_gone()

    server = await listen(script)
    with pytest.raises(AnswerTimeout):
        await rest_of(await ask(server.url, first_byte=SHORT))
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_signs_of_life_are_no_answer(listen, ask):
    async def script(peer):
        await peer.request()
        while not peer.gone.is_set():
            await peer.say(b"HTTP/1.1 102 Processing\r\n\r\n")
            await asyncio.sleep(SHORT / 20)

    with pytest.raises(AnswerTimeout):
        await ask((await listen(script)).url, first_byte=SHORT)


@pytest.mark.parametrize("raw", [chunked(b"x"), chunked(b"x") + b"5\r\n", b"HTTP/1.1 200 OK\r\n\r\nx"])
async def test_silence_within_the_body_has_its_own_limit(listen, ask, raw):
    async def script(peer):
        await peer.request()
        await peer.say(raw)
        await peer.until_gone()

    answer = await ask((await listen(script)).url, first_byte=3600, idle=SHORT)
    assert await answer.chunk() == b"x"
    with pytest.raises(AnswerTimeout):
        await asyncio.wait_for(answer.chunk(), 5)
    answer.close()


async def test_a_long_answer_has_no_limit_in_total(listen, ask):
    async def script(peer):
        await peer.request()
        await peer.say(chunked())
        for _ in range(12):
            await peer.say(chunk(b"x"))
            await asyncio.sleep(SHORT / 2)
        await peer.say(chunk(b""))

    answer = await ask((await listen(script)).url, first_byte=SHORT * 5, idle=SHORT * 5)
    assert await rest_of(answer) == b"x" * 12


async def test_the_time_that_the_reader_takes_is_not_the_servers(listen, ask):
    told = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(chunked(b"x"))
        await told.wait()
        await peer.say(chunk(b"y"))
        await peer.until_gone()

    answer = await ask((await listen(script)).url, idle=SHORT)
    assert await answer.chunk() == b"x"
    await asyncio.sleep(SHORT * 2)
    told.set()
    assert await answer.chunk() == b"y"
    answer.close()


async def test_a_server_that_stops_taking_the_request(listen, ask):
    full = asyncio.Event()

    async def script(peer):
        await peer.head()
        await full.wait()

    server = await listen(script)
    with pytest.raises(SendTimeout):
        await ask(server.url, body=b"x" * 64_000_000, first_byte=SHORT * 4)
    full.set()


async def test_a_limit_of_one_request_is_none_of_the_next_one(listen, ask):
    told = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(ok())
        await peer.request()
        await told.wait()
        await peer.say(ok())
        await peer.until_gone()

    server = await listen(script)
    await rest_of(await ask(server.url, first_byte=SHORT, idle=SHORT))
    asking = asyncio.create_task(ask(server.url))
    await asyncio.sleep(SHORT * 2)
    told.set()
    assert await rest_of(await asking) == b"fine"
    assert len(server.peers) == 1
