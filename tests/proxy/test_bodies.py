"""Bodies of requests: their limit, and those that are passed on while they come."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from proxy.settings import Settings
from tests.proxy.conftest import Duet, eventually
from tests.proxy.raw_engine import RawEngine

JSON = b"content-type: application/json\r\n"
PIECE = b"x" * 100_000


class Client:
    """One connection to the proxy, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> tuple[int, bytes, dict]:
        """Status, head and JSON body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head.split()[1]), head, json.loads(await self.reader.readexactly(length))

    async def passed_on(self) -> int:
        """The status of an engine's answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        await self.reader.readuntil(b"0\r\n\r\n")
        return int(head.split()[1])

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Duet], Awaitable[Client]]]:
    """Opens connections; the test's end closes them."""
    clients = []

    async def begin(duet: Duet) -> Client:
        host, port = duet.url.removeprefix("http://").split(":")
        clients.append(Client(*await asyncio.open_connection(host, port)))
        return clients[-1]

    yield begin
    for client in clients:
        client.close()


def post(path: str, headers: bytes, body: bytes = b"") -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\n".encode() + headers + b"\r\n" + body


@pytest.fixture
async def small(start):
    """A proxy that takes bodies of 1000 bytes."""
    return await start(settings=Settings(body_limit=1000))


@pytest.mark.parametrize("path", ["/v1/completions", "/echo"])
@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"])
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(small, path, expect, connect):
    client = await connect(small)
    await client.send(post(path, b"content-length: 1001\r\n" + expect))
    status, head, body = await client.answer()
    assert (status, body["error"]["code"]) == (413, 413)
    assert "1000" in body["error"]["message"]
    assert b"connection: close" in head
    client.close()
    await small.idle()


@pytest.mark.parametrize(("path", "kind"), [("/v1/completions", JSON), ("/echo", JSON), ("/echo", b"")])
async def test_a_body_that_becomes_too_large_is_refused_and_the_connection_ends(small, path, kind, connect):
    client = await connect(small)
    await client.send(post(path, b"transfer-encoding: chunked\r\n" + kind, b"3e9\r\n" + b"x" * 1001 + b"\r\n"))
    status, head, _ = await client.answer()
    assert status == 413
    assert b"connection: close" in head
    await client.send(b"5\r\n12345\r\n0\r\n\r\n" + post("/echo", b"content-length: 0\r\n"))
    assert await client.reader.read() == b""  # what followed was never taken for another request
    client.close()
    assert small.decode.seen == small.decode.echoed == []


async def test_a_client_that_sends_on_gets_the_refusal_and_its_next_request_is_served(small):
    for _ in range(2):
        assert (await small.client.post("/echo", content=b"x" * 5_000_000)).status_code == 413
        assert (await small.client.post("/echo", content=b"x")).content == b"x"


async def test_a_large_body_is_passed_on_while_it_comes(start, connect):
    arrived = asyncio.Event()

    async def script(reader, writer):
        await reader.readexactly(len(PIECE))
        arrived.set()
        await reader.readexactly(2 * len(PIECE))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    engine = RawEngine(script)
    client = await connect(await start(engines=[engine]))
    await client.send(
        post(
            "/v1/audio/transcriptions",
            b"content-length: 300000\r\ncontent-type: multipart/form-data; boundary=b\r\n",
            PIECE,
        )
    )
    await asyncio.wait_for(arrived.wait(), 10)
    await client.send(2 * PIECE)
    assert await client.passed_on() == 200
    assert b"content-length: 300000\r\n" in engine.head
    assert b"content-type: multipart/form-data; boundary=b\r\n" in engine.head
    client.close()


async def test_a_body_of_unknown_length_is_passed_on_in_chunks(start, connect):
    async def script(reader, writer):
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    engine = RawEngine(script)
    client = await connect(await start(engines=[engine]))
    await client.send(post("/x", b"transfer-encoding: chunked\r\n", b"3\r\none\r\n0\r\n\r\n"))
    assert await client.passed_on() == 200
    assert b"transfer-encoding: chunked\r\n" in engine.head
    client.close()


async def test_an_engine_that_refuses_before_the_body_has_come_is_heard_at_once(start, connect):
    async def script(reader, writer):
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")

    client = await connect(await start(engines=[RawEngine(script)]))
    await client.send(post("/x", b"content-length: 1000000\r\n", PIECE))
    assert await client.passed_on() == 401
    await client.send(9 * PIECE + b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")  # the next begins where the body ends
    assert b" 200 " in await client.reader.readline()
    client.close()


async def test_leaving_in_the_middle_of_a_body_closes_the_engines_connection(start, connect):
    async def script(reader, writer):
        await reader.read()

    engine = RawEngine(script)
    duet = await start(engines=[engine])
    client = await connect(duet)
    await client.send(post("/x", b"content-length: 1000000\r\n", PIECE))
    await eventually(lambda: duet.metric("duet_in_flight"), 1)
    client.close()
    await asyncio.wait_for(engine.done.wait(), 10)
    await eventually(lambda: duet.metric("duet_requests_total", endpoint="other", status="499"), 1)
    assert await duet.metric("duet_upstream_failures_total") == 0


async def test_leaving_after_the_body_closes_the_engines_connection(start, connect):
    taken = asyncio.Event()

    async def script(reader, writer):
        await reader.readexactly(3 * len(PIECE))
        taken.set()
        await reader.read()

    engine = RawEngine(script)
    client = await connect(await start(engines=[engine]))
    await client.send(post("/x", b"content-length: 300000\r\n", 3 * PIECE))
    await asyncio.wait_for(taken.wait(), 10)
    client.close()
    await asyncio.wait_for(engine.done.wait(), 10)


async def test_a_request_to_100_continue_is_answered_and_goes_no_further(duet, connect):
    client = await connect(duet)
    await client.send(post("/echo", b"content-length: 2\r\nexpect: 100-continue\r\n"))
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    await client.send(b"{}")
    assert b" 200 " in await client.reader.readline()
    assert duet.decode.echoed[0].header("expect") is None
    client.close()


@pytest.mark.parametrize("size", [70_000, 700_000])
async def test_headers_that_are_too_large_are_refused_as_such(duet, connect, size):
    client = await connect(duet)
    await client.send(post("/v1/completions", b"content-length: 2\r\nx-large: " + b"x" * size + b"\r\n"))
    status, head, body = await client.answer()
    assert (status, body["error"]["code"]) == (431, 431)
    assert b"connection: close" in head
    assert duet.prefill.seen == []


async def test_headers_within_the_limit_reach_the_engine(duet):
    large = "x" * 60_000
    answer = await duet.client.post(
        "/v1/completions", json={"model": "fake", "prompt": "x"}, headers={"x-large": large}
    )
    assert answer.status_code == 200
    assert duet.decode.seen[0].header("x-large") == large


async def test_headers_that_are_too_large_for_the_engine_get_its_answer(start):
    async def script(reader, writer):
        writer.write(b"HTTP/1.1 431 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

    duet = await start(engines=[RawEngine(script)])
    answer = await duet.client.post("/v1/completions", json={"model": "fake", "prompt": "x"})
    assert answer.status_code == 431


async def test_what_is_no_http_is_refused_in_the_shape_that_clients_know(duet, connect):
    client = await connect(duet)
    await client.send(b"GET\r\n\r\n")
    status, _, body = await client.answer()
    assert (status, body["error"]["type"]) == (400, "BadRequestError")


@pytest.mark.parametrize("pieces", [1, 7, 1000])
async def test_a_wish_for_another_protocol_is_declined_by_serving_the_request(duet, connect, pieces):
    body = json.dumps({"model": "fake", "prompt": "x", "max_tokens": 2}).encode()
    wish = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: x\r\n"
    wish += b"content-type: application/json\r\n"
    request = post("/v1/completions", wish + b"content-length: %d\r\n" % len(body), body)
    client = await connect(duet)
    for _ in range(2):
        size = -(-len(request) // pieces)
        for start in range(0, len(request), size):
            await client.send(request[start : start + size])
            await asyncio.sleep(0)
        status, _, answer = await client.answer()
        assert (status, answer["usage"]["completion_tokens"]) == (200, 2)
    assert duet.prefill.seen[0].header("upgrade") is None


async def test_a_wish_for_a_websocket_is_an_ordinary_request(duet, connect):
    client = await connect(duet)
    await client.send(b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert await client.passed_on() == 404
    await client.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
    assert await client.passed_on() == 200


async def test_a_compressed_completion_is_a_bad_request_as_it_is_to_an_engine(duet):
    raw = gzip.compress(json.dumps({"model": "fake", "prompt": "x"}).encode())
    answer = await duet.client.post("/v1/completions", content=raw, headers={"content-encoding": "gzip"})
    assert answer.status_code == 400
    assert duet.prefill.seen == []
