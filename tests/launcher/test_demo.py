"""The demo's question and its proof, against a small server on a real socket."""

import asyncio
import io
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from rich.console import Console

from launcher.demo import evidence
from launcher.demo.evidence import tokens_received, tokens_received_since
from launcher.demo.question import ask
from launcher.demo.session import DemoSession
from launcher.errors import ProofError
from tests.launcher.builders import plan

USAGE = {"prompt_tokens": 31, "completion_tokens": 2, "total_tokens": 33}


def event(data):
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def piece(text):
    return event({"choices": [{"index": 0, "delta": {"content": text}}]})


ROLE = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
END = event({"choices": [], "usage": USAGE}) + event("[DONE]")
WHOLE = ROLE + piece("It is ") + ": keep-alive\n\n" + piece("Paris.") + END


class Server:
    """Answers ``/metrics`` as an engine and everything else as the proxy."""

    def __init__(self):
        self.status, self.body, self.cut = "200 OK", WHOLE, False
        self.counters = [0]
        self.verdict = "proven"
        self.asked = {}

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(next((line[15:] for line in head.split("\r\n") if line.startswith("content-length:")), 0))
        if content := await reader.readexactly(length):
            self.asked = json.loads(content)
        if "/metrics" in head:
            status, kind, body = "200 OK", "text/plain", self.metrics()
        elif "/pairs/prove" in head:
            status, kind, body = "200 OK", "application/json", self.matrix()
        else:
            status, kind, body = self.answer()
        size = len(body) + (100 if self.cut else 0)
        headers = f"content-type: {kind}\r\ncontent-length: {size}\r\nx-duet-path: pd\r\nconnection: close"
        writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def answer(self):
        return self.status, "text/event-stream", self.body

    def matrix(self):
        proof = {"verdict": self.verdict, "at": 1.0, "reason": "", "tokens": 144, "seconds": 0.1}
        pair = {"prefill": "prefill-0", "decode": "decode-0", "standing": "proven", "gets_requests": True}
        counts = {"handed_over": 1, "failed": 0, "last_handed_over": 1.0, "reason": ""}
        speed = {"bytes": 4096, "transfer_seconds": 0.1, "bytes_per_second": 40960.0}
        return json.dumps({"pairs": [{**pair, **counts, "proof": {**proof, **speed}}], "blamed": {}})

    def metrics(self):
        """The next counter; the last one stays."""
        value = self.counters.pop(0) if len(self.counters) > 1 else self.counters[0]
        name = "vllm:prompt_tokens_by_source_total"
        rows = {"local_compute": 99, "external_kv_transfer": value, "local_cache_hit": 7}
        samples = "".join(f'{name}{{engine="0",source="{key}"}} {count}.0\n' for key, count in rows.items())
        return f"# TYPE other_total counter\nother_total 5.0\n# HELP {name} Tokens.\n# TYPE {name} counter\n{samples}"


@asynccontextmanager
async def listening(server):
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"


@pytest.fixture
async def client():
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


@pytest.fixture
def server():
    return Server()


@pytest.fixture
async def url(server):
    async with listening(server) as url:
        yield url


async def test_a_whole_answer_is_shown_piece_by_piece_and_measured(server, url, client):
    shown = []
    answer = await ask(client, url, "smollm2", "Why?", shown.append)
    assert shown == ["It is ", "Paris."]
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens, answer.path) == ("It is Paris.", 31, 2, "pd")
    assert answer.ttft > 0
    assert (server.asked["model"], server.asked["temperature"], server.asked["stream"]) == ("smollm2", 0, True)
    assert server.asked["messages"] == [{"role": "user", "content": "Why?"}]


async def test_an_answer_of_one_piece_has_no_speed(server, url, client):
    server.body = piece("Paris.") + END
    assert (await ask(client, url, "m", "?", lambda _: None)).tokens_per_second is None


@pytest.mark.parametrize("body", ["", ROLE, ROLE + piece("It")])
async def test_an_answer_that_ends_early_is_no_proof(server, url, client, body):
    server.body = body
    with pytest.raises(ProofError, match="ended before it was complete"):
        await ask(client, url, "m", "?", lambda _: None)


@pytest.mark.parametrize("body", [piece("It") + event("[DONE]"), ROLE + END])
async def test_an_answer_without_text_or_usage_is_no_proof(server, url, client, body):
    server.body = body
    with pytest.raises(ProofError, match="empty, or came without its usage"):
        await ask(client, url, "m", "?", lambda _: None)


async def test_an_error_in_the_stream_is_no_proof(server, url, client):
    server.body = piece("It") + event({"error": {"message": "boom", "code": 500}}) + event("[DONE]")
    with pytest.raises(ProofError, match=r"the answer broke off: .*boom"):
        await ask(client, url, "m", "?", lambda _: None)


async def test_another_status_is_no_proof(server, url, client):
    server.status, server.body = "503 Service Unavailable", '{"error": {"message": "no decode"}}'
    with pytest.raises(ProofError, match=r"the server answered 503: .*no decode"):
        await ask(client, url, "m", "?", lambda _: None)


async def test_the_counters_of_all_decode_instances_add_up(server, url, client):
    server.counters = [31]
    other = Server()
    other.counters = [11]
    async with listening(other) as second:
        assert await tokens_received(client, [url, second]) == 42


async def test_only_tokens_from_the_transfer_count(server, url, client):
    assert await tokens_received(client, [url]) == 0


async def test_a_counter_that_rises_late_is_waited_for(server, url, client):
    server.counters = [5, 5, 36]
    assert await tokens_received_since(client, [url], 5, wanted=31) == 31


async def test_a_counter_that_stays_is_given_up(server, url, client, monkeypatch):
    monkeypatch.setattr(evidence, "_PATIENCE", 0.2)
    server.counters = [10]
    assert await tokens_received_since(client, [url], 5, wanted=31) == 5


@pytest.fixture
def settled(url):
    """A pair whose proxy and decode are the server."""
    made = plan("demo")
    port = int(url.rpartition(":")[2])
    prefill, decode = made.engines
    return replace(made, engines=(prefill, replace(decode, port=port)), proxy=replace(made.proxy, port=port))


def session(*, once):
    return DemoSession(
        Console(file=io.StringIO(), width=200), "Why?", once=once, launcher="launcher"
    ), lambda s: s._console.file.getvalue()


@pytest.mark.parametrize("once", [True, False])
async def test_a_counter_that_rose_by_the_prompt_is_the_proof(server, settled, client, once):
    server.counters = [5, 36]
    demo, printed = session(once=once)
    assert await demo(settled, client) is not once
    assert "Proved: decode computed none of the 31 prompt tokens itself" in printed(demo)
    assert "It is Paris." in printed(demo)


async def test_a_canary_that_does_not_come_through_is_no_proof(server, settled, client):
    server.counters, server.verdict = [5, 36], "wrong_text"
    demo, printed = session(once=True)
    with pytest.raises(ProofError, match="a canary did not come through"):
        await demo(settled, client)
    assert "wrong text" in printed(demo)


async def test_a_counter_that_did_not_rise_is_no_proof(server, settled, client, monkeypatch):
    monkeypatch.setattr(evidence, "_PATIENCE", 0.2)
    demo, printed = session(once=True)
    with pytest.raises(ProofError, match="decode received 0 of the prompt's 31 tokens"):
        await demo(settled, client)
    assert "Proved" not in printed(demo)
    demo, printed = session(once=False)
    assert await demo(settled, client) is True
    assert "No proof: decode received 0" in printed(demo)


async def test_a_connection_that_breaks_is_no_proof(server, settled, client):
    demo, _ = session(once=True)
    server.cut = True
    with pytest.raises(ProofError, match="the question got no answer"):
        await demo(settled, client)
