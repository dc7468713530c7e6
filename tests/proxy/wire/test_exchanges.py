"""Requests and answers over real sockets, with servers that misbehave at every moment."""

import asyncio
import hashlib

import pytest

from proxy.wire.errors import BadAddress, Broken, Malformed, Unreachable, Unsendable, WireError
from tests.proxy.wire.conftest import answering, chunk, chunked, ok, rest_of

LARGE = bytes(range(256)) * (64 * 4096)  # 64 MiB


async def test_the_request_arrives_as_it_was_meant(listen, ask):
    requests = []

    async def script(peer):
        requests.append(await peer.request())
        await peer.say(ok())

    server = await listen(script)
    answer = await ask(server.url + "/base", "POST", "/v1/x", b"body", headers=[(b"x-a", b"1"), (b"x-a", b"\xff")])
    assert answer.status == 200
    assert await rest_of(answer) == b"fine"
    host = server.url.removeprefix("http://").encode()
    assert requests == [
        b"POST /base/v1/x HTTP/1.1\r\nhost: %b\r\nx-a: 1\r\nx-a: \xff\r\ncontent-length: 4\r\n\r\nbody" % host
    ]


async def test_a_request_without_a_body_has_no_length(listen, ask):
    heads = []

    async def script(peer):
        heads.append(await peer.request())
        await peer.say(ok())

    await rest_of(await ask((await listen(script)).url, "GET", "/health", None))
    assert b"content-length" not in heads[0]


WHOLE = {
    "a length": ok(),
    "chunks": chunked(b"fi", b"ne", b""),
    "interim answers before it": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + ok(),
    "trailers": chunked(b"fine") + b"0\r\nx: y\r\n\r\n",
}


@pytest.mark.parametrize("raw", WHOLE.values(), ids=WHOLE)
async def test_a_whole_answer_leaves_the_connection_for_the_next_request(listen, ask, raw):
    server = await listen(answering(raw, raw))
    for _ in range(2):
        assert await rest_of(await ask(server.url)) == b"fine"
    assert len(server.peers) == 1


LAST = {
    "the end of the connection": b"HTTP/1.1 200 OK\r\n\r\nfine",
    "a close that was announced": ok(b"fine", b"connection: close"),
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\ncontent-length: 4\r\n\r\nfine",
    "more than was asked for": ok() + ok(),
}


@pytest.mark.parametrize("raw", LAST.values(), ids=LAST)
async def test_after_some_answers_the_next_request_takes_a_new_connection(listen, ask, raw):
    async def once(peer):
        await peer.request()
        await peer.say(raw)

    server = await listen(once)
    for _ in range(2):
        assert await rest_of(await ask(server.url)) == b"fine"
    assert len(server.peers) == 2


@pytest.mark.parametrize("status", [204, 304])
async def test_no_body_is_waited_for_where_none_may_be(listen, ask, status):
    server = await listen(answering(b"HTTP/1.1 %d Empty\r\ncontent-length: 9\r\n\r\n" % status))
    answer = await ask(server.url)
    assert (answer.status, await rest_of(answer)) == (status, b"")
    answer = await ask(server.url, "HEAD", "/", None)
    assert await rest_of(answer) == b""


async def test_pieces_come_when_they_come_and_together_when_they_came_together(listen, ask):
    proceed = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(chunked(b"one"))
        await proceed.wait()
        await peer.say(chunk(b"two") + chunk(b"three") + chunk(b""))

    answer = await ask((await listen(script)).url)
    assert await answer.chunk() == b"one"
    proceed.set()
    assert await answer.chunk() == b"twothree"
    assert await answer.chunk() == b""
    assert await answer.chunk() == b""
    answer.close()


CUTS = {
    "before an answer": b"",
    "in the status line": b"HTTP/1.1 2",
    "in the headers": b"HTTP/1.1 200 OK\r\nx",
    "before the body": b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n",
    "in the body": b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfi",
    "in a chunk's size": chunked(b"fi") + b"2",
    "in a chunk": chunked(b"fi") + b"2\r\nn",
    "before the last chunk": chunked(b"fi", b"ne"),
    "in the trailers": chunked(b"fi") + b"0\r\nx: y\r\n",
}


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("raw", CUTS.values(), ids=CUTS)
async def test_an_answer_that_breaks_off_is_never_complete(listen, ask, raw, reset):
    async def script(peer):
        await peer.request()
        await peer.say(raw)
        if reset:
            peer.reset()

    with pytest.raises(Broken):
        await rest_of(await ask((await listen(script)).url))


async def test_a_reset_does_not_end_an_answer_without_a_length(listen, ask):
    taken = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await taken.wait()
        peer.reset()

    answer = await ask((await listen(script)).url)
    assert await answer.chunk() == b"half"
    taken.set()
    with pytest.raises(Broken):
        await answer.chunk()
    answer.close()


async def test_what_came_before_the_break_is_given_out_first(listen, ask, client):
    async def script(peer):
        await peer.request()
        await peer.say(chunked(b"some"))

    server = await listen(script)
    answer = await ask(server.url)
    await server.peers[0].gone.wait()
    assert await answer.chunk() == b"some"
    with pytest.raises(Broken):
        await answer.chunk()
    answer.close()


@pytest.mark.parametrize("raw", [b"SSH-2.0-OpenSSH\r\n", chunked(b"x") + b"zz\r\n", b"HTTP/1.1 101 Up\r\n\r\n"])
async def test_what_is_no_http_is_malformed_and_the_connection_closed(listen, ask, raw):
    async def script(peer):
        await peer.request()
        await peer.say(raw)
        await peer.until_gone()

    server = await listen(script)
    with pytest.raises(Malformed):
        await rest_of(await ask(server.url))
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_a_large_body_is_sent_whole(listen, ask):
    digests = []

    async def script(peer):
        request = await peer.request()
        digests.append(hashlib.md5(request[-len(LARGE) :]).digest())
        await peer.say(ok())
        await peer.until_gone()

    server = await listen(script)
    assert await rest_of(await ask(server.url, body=LARGE, first_byte=60)) == b"fine"
    assert digests == [hashlib.md5(LARGE).digest()]


async def test_an_answer_before_the_body_was_sent_ends_the_sending(listen, ask):
    read = asyncio.Event()

    async def refuse(peer):
        await peer.head()
        await peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nno!")
        await read.wait()  # of the body nothing is read

    server = await listen(refuse)
    answer = await ask(server.url, body=LARGE)
    assert (answer.status, await rest_of(answer)) == (413, b"no!")
    read.set()
    answer = await ask(server.url)
    assert (answer.status, len(server.peers)) == (413, 2)
    answer.close()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_connection_that_ends_while_the_body_is_sent_is_broken(listen, ask, reset, caplog):
    async def script(peer):
        await peer.head()
        if reset:
            peer.reset()

    server = await listen(script)
    with pytest.raises(Broken):
        await ask(server.url, body=LARGE)
    assert not caplog.records  # asyncio's complaint about who writes on


async def test_a_slow_reader_gets_everything(listen, ask):
    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(LARGE))
        await peer.say(LARGE)
        await peer.until_gone()

    answer = await ask((await listen(script)).url)
    digest, largest = hashlib.md5(), 0
    while part := await answer.chunk():
        digest.update(part)
        largest = max(largest, len(part))
        for _ in range(10):
            await asyncio.sleep(0)
    answer.close()
    assert digest.digest() == hashlib.md5(LARGE).digest()
    assert largest <= 2 * 256 * 1024


@pytest.mark.parametrize(
    "url", ["ftp://host", "host:80", "http://", "http://[::1", "http://host:99999", "http://h\xf6"]
)
async def test_an_address_that_is_none(ask, url):
    with pytest.raises(BadAddress):
        await ask(url)


async def test_a_closed_port_is_unreachable(listen, ask, unused_tcp_port):
    with pytest.raises(Unreachable):
        await ask(f"http://127.0.0.1:{unused_tcp_port}")


SMUGGLED = [
    {"headers": [(b"x", b"1\r\nhost: other")]},
    {"headers": [(b"x", b"1\nhost: other")]},
    {"headers": [(b"x\r", b"1")]},
    {"path": "/x HTTP/1.1\r\nhost: other\r\n\r\n"},
    {"path": "/a b"},
    {"path": "/\xf6"},
]


@pytest.mark.parametrize("what", SMUGGLED)
async def test_nothing_can_be_smuggled_into_a_request(listen, ask, what):
    server = await listen(answering(ok()))
    with pytest.raises(Unsendable):
        await ask(server.url, **what)
    assert server.peers == []


def test_every_error_is_described_by_its_class():
    assert all(error.__doc__ for error in WireError.__subclasses__())
