"""Which connections are kept, used again, tried again and closed."""

import asyncio

import pytest

from proxy.wire import client as client_module
from proxy.wire.client import Client
from proxy.wire.connection import BUFFER_LIMIT, Connection
from proxy.wire.errors import Broken, Unreachable
from tests.proxy.wire.conftest import answering, chunk, chunked, ok, rest_of


async def hold(peer):
    """Answer the beginning of a stream and wait for the client to close."""
    await peer.request()
    await peer.say(chunked(b"first"))
    await peer.until_gone()


async def test_the_connection_used_last_is_used_next(listen, ask):
    server = await listen(answering(ok(b"1"), ok(b"1 again")), answering(ok(b"2"), ok(b"2 again")))
    first, second = await ask(server.url), await ask(server.url)
    assert await rest_of(first) == b"1"
    assert await rest_of(second) == b"2"
    assert await rest_of(await ask(server.url)) == b"2 again"


async def test_two_servers_have_their_own_connections(listen, ask):
    servers = [await listen(answering(ok(b"a"), ok(b"a"))), await listen(answering(ok(b"b"), ok(b"b")))]
    for _ in range(2):
        assert [await rest_of(await ask(server.url)) for server in servers] == [b"a", b"b"]
    assert [len(server.peers) for server in servers] == [1, 1]


async def test_a_connection_that_has_waited_too_long_is_closed_unused(listen, ask, monkeypatch):
    server = await listen(answering(ok(), ok()))
    await rest_of(await ask(server.url))
    monkeypatch.setattr(client_module, "KEPT", 0.0)
    await rest_of(await ask(server.url))
    assert len(server.peers) == 2
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_connections_at_the_bottom_expire_when_another_is_kept(listen, ask, monkeypatch):
    server = await listen(answering(ok(), ok()))
    first, second = await ask(server.url), await ask(server.url)
    await rest_of(first)
    monkeypatch.setattr(client_module, "KEPT", 0.0)
    await rest_of(second)
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_a_connection_that_was_closed_while_idle_is_not_used(listen, ask):
    closing = asyncio.Event()

    async def once(peer):
        await peer.request()
        await peer.say(ok())
        await closing.wait()
        await peer.close()

    server = await listen(once, answering(ok(), ok(), ok()))
    first, second = await ask(server.url), await ask(server.url)
    await rest_of(second)
    await rest_of(first)
    closing.set()
    await server.peers[0].gone.wait()
    await rest_of(await ask(server.url))
    await rest_of(await ask(server.url))
    assert len(server.peers) in (2, 3)  # 3: the close was still on its way when the request was sent


@pytest.mark.parametrize("extra", [b"x", ok(), b"\r\n"])
async def test_a_connection_on_which_more_came_while_idle_is_closed(listen, ask, extra):
    more = asyncio.Event()

    async def talkative(peer):
        await peer.request()
        await peer.say(ok())
        await more.wait()
        await peer.say(extra)
        await peer.until_gone()

    server = await listen(talkative, answering(ok()))
    await rest_of(await ask(server.url))
    more.set()
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)
    assert await rest_of(await ask(server.url)) == b"fine"
    assert len(server.peers) == 2


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("body", [b"{}", b"x" * 8_000_000], ids=["small", "large"])
async def test_a_request_that_met_a_stale_connection_is_sent_once_more(listen, ask, reset, body):
    requests = []

    async def stale(peer):
        await peer.request()
        await peer.say(ok())
        await peer.head()
        if reset:
            peer.reset()

    async def fresh(peer):
        requests.append(await peer.request())
        await peer.say(ok(b"again"))
        await peer.until_gone()

    server = await listen(stale, fresh)
    await rest_of(await ask(server.url))
    assert await rest_of(await ask(server.url, body=body)) == b"again"
    assert [request.partition(b"\r\n\r\n")[2] for request in requests] == [body]


async def test_a_request_is_sent_at_most_twice(listen, ask):
    async def stale(peer):
        await peer.request()
        await peer.say(ok())
        await peer.request()

    async def refuses(peer):
        await peer.request()

    server = await listen(stale, refuses)
    await rest_of(await ask(server.url))
    with pytest.raises(Broken):
        await ask(server.url)
    assert len(server.peers) == 2


async def test_a_request_on_a_new_connection_is_sent_once(listen, ask):
    async def refuses(peer):
        await peer.request()

    server = await listen(refuses)
    with pytest.raises(Broken):
        await ask(server.url)
    assert len(server.peers) == 1


async def test_a_request_of_which_a_byte_was_answered_is_not_sent_again(listen, ask):
    async def breaks(peer):
        await peer.request()
        await peer.say(ok())
        await peer.request()
        await peer.say(b"H")

    server = await listen(breaks)
    await rest_of(await ask(server.url))
    with pytest.raises(Broken):
        await ask(server.url)
    assert len(server.peers) == 1


async def test_closing_an_unfinished_answer_closes_the_connection(listen, ask):
    server = await listen(hold)
    answer = await ask(server.url)
    assert await answer.chunk() == b"first"
    answer.close()
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)
    answer.close()


async def test_closing_a_finished_answer_that_was_not_read_keeps_the_connection(listen, ask):
    server = await listen(answering(ok(), ok(b"next")))
    (await ask(server.url)).close()
    assert await rest_of(await ask(server.url)) == b"next"
    assert len(server.peers) == 1


async def test_who_is_cancelled_while_waiting_for_headers_closes_the_connection(listen, ask):
    asked = asyncio.Event()

    async def script(peer):
        await peer.request()
        asked.set()
        await peer.until_gone()

    server = await listen(script)
    asking = asyncio.create_task(ask(server.url))
    await asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_who_is_cancelled_while_sending_closes_the_connection(listen, ask):
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def script(peer):
        await peer.head()
        asked.set()
        await cancelled.wait()  # until then nothing of the body is read
        await peer.until_gone()

    server = await listen(script)
    asking = asyncio.create_task(ask(server.url, body=b"x" * 64_000_000))
    await asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    cancelled.set()
    await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_closing_the_client_closes_all_connections(listen):
    asked = asyncio.Event()

    async def silent(peer):
        await peer.request()
        asked.set()
        await peer.until_gone()

    server = await listen(answering(ok()), hold, silent)
    client = Client()
    limits = {"connect": 5, "first_byte": 5, "idle": 5}
    kept = await client.open(server.url, "POST", "/", [], b"", **limits)
    streaming = await client.open(server.url, "POST", "/", [], b"", **limits)
    assert await streaming.chunk() == b"first"
    waiting = asyncio.create_task(client.open(server.url, "POST", "/", [], b"", **limits))
    await asked.wait()
    kept.close()
    reading = asyncio.create_task(streaming.chunk())
    await asyncio.sleep(0)
    await client.aclose()
    for broken in (reading, waiting):
        with pytest.raises(Broken):
            await broken
    streaming.close()
    for peer in server.peers:
        await asyncio.wait_for(peer.gone.wait(), 5)


async def test_a_connection_does_not_wait_to_fill_its_packets(listen, ask):
    answer = await ask((await listen(hold)).url)
    raw = answer._connection._transport.get_extra_info("socket")
    assert raw.getsockopt(6, 1) != 0  # IPPROTO_TCP, TCP_NODELAY
    answer.close()


class SlowTransport(asyncio.Transport):
    """Notes what it was told; sends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def write(self, data: bytes) -> None:
        self.told.append("write")

    def is_closing(self) -> bool:
        return "abort" in self.told

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    def abort(self) -> None:
        self.told.append("abort")


async def test_a_connection_stops_receiving_while_its_reader_lags():
    transport, connection = SlowTransport(), Connection(lambda _: None)
    connection.connection_made(transport)
    asking = asyncio.create_task(connection.exchange(b"GET", b"", first_byte_by=1e9, idle=1))
    await asyncio.sleep(0)
    connection.data_received(chunked())
    await asking
    transport.told.clear()
    connection.data_received(chunk(b"x" * BUFFER_LIMIT))
    assert transport.told == []
    connection.data_received(chunk(b"x"))
    assert transport.told == ["pause"]
    assert len(await connection.chunk()) == BUFFER_LIMIT + 1
    assert transport.told == ["pause", "resume"]
    connection.abort()
    connection.connection_lost(None)


async def test_nothing_more_is_written_to_a_connection_that_is_closing():
    transport, connection = SlowTransport(), Connection(lambda _: None)
    connection.connection_made(transport)
    connection.abort()
    asking = asyncio.create_task(connection.exchange(b"POST", b"x" * 8_000_000, first_byte_by=1e9, idle=1))
    await asyncio.sleep(0)
    connection.connection_lost(ConnectionResetError())
    with pytest.raises(Broken):
        await asking
    assert transport.told == ["abort", "write"]  # the head


async def test_nothing_is_written_to_a_connection_that_was_lost_before():
    transport, connection = SlowTransport(), Connection(lambda _: None)
    connection.connection_made(transport)
    connection.connection_lost(None)
    with pytest.raises(Broken):
        await connection.exchange(b"POST", b"", first_byte_by=1e9, idle=1)
    assert transport.told == []


async def test_a_server_that_closes_as_soon_as_it_has_accepted(listen, ask):
    async def script(peer):
        peer.reset()

    server = await listen(script)
    for _ in range(20):
        with pytest.raises((Broken, Unreachable)):
            await ask(server.url)


async def test_closing_does_not_wait_for_what_was_lost_while_it_was_made(monkeypatch):
    transport = SlowTransport()

    async def create_connection(factory, *address, **options):
        connection = factory()
        connection.connection_made(transport)
        connection.connection_lost(None)
        return transport, connection

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", create_connection, raising=False)
    client = Client()
    with pytest.raises(Broken):
        await client.open("http://host", "GET", "/", [], None, connect=5, first_byte=5, idle=5)
    await asyncio.wait_for(client.aclose(), 5)
