"""Bodies that still come while they are sent."""

import asyncio

import pytest

from proxy.upload import Upload
from proxy.wire.errors import AnswerTimeout, Broken, SendTimeout
from tests.proxy.wire.conftest import answering, ok, rest_of

on_leaping_loop = pytest.mark.asyncio(loop_factories=["asyncio"])


async def given(*parts: bytes):
    for part in parts:
        yield part


class Stalled:
    """One part, and then no other; knows when it was let go."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def parts(self):
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            self.closed.set()


async def test_a_body_of_known_length_is_sent_as_it_is(listen, ask):
    requests = []

    async def script(peer):
        requests.append(await peer.request())
        await peer.say(ok())

    server = await listen(script)
    assert await rest_of(await ask(server.url, body=Upload(given(b"one ", b"two"), 7))) == b"fine"
    assert b"content-length: 7\r\n" in requests[0]
    assert requests[0].endswith(b"\r\n\r\none two")


async def test_a_body_of_unknown_length_is_sent_in_chunks(listen, ask):
    heads, bodies = [], []

    async def script(peer):
        heads.append(await peer.head())
        bodies.append(await peer.until(b"0\r\n\r\n"))
        await peer.say(ok())

    server = await listen(script)
    assert await rest_of(await ask(server.url, body=Upload(given(b"one", b"x" * 20), None))) == b"fine"
    assert b"transfer-encoding: chunked\r\n" in heads[0]
    assert b"content-length" not in heads[0]
    assert bodies == [b"3\r\none\r\n14\r\n" + b"x" * 20 + b"\r\n0\r\n\r\n"]


async def test_every_part_is_sent_before_the_next_has_come(listen, ask):
    arrived = asyncio.Event()

    async def parts():
        yield b"first"
        await arrived.wait()
        yield b"second"

    async def script(peer):
        await peer.head()
        await peer.until(b"first")
        arrived.set()
        await peer.until(b"second")
        await peer.say(ok())

    server = await listen(script)
    assert await rest_of(await ask(server.url, body=Upload(parts(), 11))) == b"fine"


async def test_a_large_body_arrives_whole_at_a_slow_reader(listen, ask):
    async def script(peer):
        await peer.request()
        await peer.say(ok())

    server = await listen(script)
    body = Upload(given(*[b"x" * 100_000] * 100), 10_000_000)
    assert await rest_of(await ask(server.url, body=body)) == b"fine"


async def test_an_early_answer_ends_the_upload(listen, ask):
    async def script(peer):
        await peer.head()
        await peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await peer.until_gone()

    server, stalled = await listen(script), Stalled()
    answer = await ask(server.url, body=Upload(stalled.parts(), 1000))
    assert answer.status == 413
    assert await rest_of(answer) == b"no"
    assert stalled.closed.is_set()
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)  # it could not know where the next request begins


async def test_what_the_parts_raise_comes_through_and_the_connection_is_closed(listen, ask):
    async def parts():
        yield b"first"
        raise LookupError("the client is gone")

    async def script(peer):
        await peer.head()
        await peer.until_gone()

    server = await listen(script)
    with pytest.raises(LookupError):
        await ask(server.url, body=Upload(parts(), 1000))
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_a_server_that_closes_in_the_middle_breaks_it(listen, ask):
    async def script(peer):
        await peer.head()
        peer.reset()

    server, stalled = await listen(script), Stalled()
    with pytest.raises(Broken):
        await ask(server.url, body=Upload(stalled.parts(), 1000))
    assert stalled.closed.is_set()


async def test_it_takes_no_kept_connection_and_leaves_one(listen, ask):
    server = await listen(answering(ok()), answering(ok(), ok()))
    await rest_of(await ask(server.url))
    assert await rest_of(await ask(server.url, body=Upload(given(b"x"), 1))) == b"fine"
    assert await rest_of(await ask(server.url)) == b"fine"
    assert len(server.peers) == 2


@on_leaping_loop
async def test_the_time_for_the_answer_begins_when_the_body_is_sent(listen, ask):
    async def parts():
        yield b"first"
        asyncio.get_running_loop().leap(301)
        await asyncio.sleep(0)
        yield b"second"

    async def script(peer):
        await peer.request()
        if len(server.peers) > 1:
            for _ in range(20):  # the client takes some turns to notice that all is sent
                await asyncio.sleep(0)
                asyncio.get_running_loop().leap(100)
            await peer.until_gone()
        await peer.say(ok())

    server = await listen(script)
    assert await rest_of(await ask(server.url, body=Upload(parts(), 11), first_byte=300)) == b"fine"
    with pytest.raises(AnswerTimeout):
        await ask(server.url, body=Upload(given(b"x"), 1), first_byte=300)


@on_leaping_loop
async def test_a_server_that_takes_no_more_is_too_slow(listen, ask):
    async def parts():
        while True:
            yield b"x" * 1_000_000
            asyncio.get_running_loop().call_soon(asyncio.get_running_loop().leap, 11)

    async def script(peer):
        await peer.head()
        await asyncio.Event().wait()

    server = await listen(script)
    with pytest.raises(SendTimeout):
        await ask(server.url, body=Upload(parts(), 10**12), idle=10)
