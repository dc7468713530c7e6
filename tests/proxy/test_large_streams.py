"""Long streams: passed on as they come, and never kept."""

import asyncio
import contextlib
from pathlib import Path

import psutil
import pytest

from proxy.config import ProxyConfig
from proxy.settings import Settings
from tests.proxy.conftest import topology_of
from tests.proxy.program import Program, running
from tests.proxy.raw_engine import RawEngine

MEGABYTE = 2**20
EVENT = b'data: {"choices":[{"index":0,"text":"' + b"x" * (64 * 1024) + b'"}]}\n\n'
COUNT = 100 * MEGABYTE // len(EVENT)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
ALLOWANCE = 24 * MEGABYTE
"""For what lies in buffers, and for what Python does not give back."""
BODY = {"model": "fake", "prompt": "one", "stream": True}


class Talker:
    """Sends a hundred megabytes of events, as fast as they are taken."""

    def __init__(self) -> None:
        self.sent = 0
        self.engine = RawEngine(self._talk)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        with contextlib.suppress(ConnectionError):
            for _ in range(COUNT):
                writer.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
                await writer.drain()
                self.sent += len(EVENT)
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            await writer.drain()


@pytest.fixture
async def talker(tmp_path: Path):
    """A proxy of its own process before an engine that talks without end."""
    talker = Talker()
    async with talker.engine, running(ProxyConfig(topology_of([talker.engine]), Settings()), tmp_path) as program:
        yield talker, program


def memory(program: Program) -> int:
    return psutil.Process(program.pid).memory_info().rss


async def test_a_hundred_megabytes_pass_through_little_memory(talker):
    _, program = talker
    before, most, received = memory(program), 0, 0
    async with program.client.stream("POST", "/v1/completions", json=BODY) as answer:
        async for part in answer.aiter_raw():
            if received // MEGABYTE != (received + len(part)) // MEGABYTE:
                most = max(most, memory(program))
            received += len(part)
    assert received == COUNT * len(EVENT) + len(b"data: [DONE]\n\n")
    assert most - before < ALLOWANCE


async def test_a_reader_that_lags_holds_the_engine_up_and_fills_no_memory(talker):
    engine, program = talker
    before = memory(program)
    async with program.client.stream("POST", "/v1/completions", json=BODY) as answer:
        await anext(answer.aiter_raw())
        sent = -1
        while sent != engine.sent:  # until nothing moves while the proxy answers others
            sent = engine.sent
            for _ in range(20):
                assert (await program.client.get("/health")).status_code == 200
        assert sent < COUNT * len(EVENT) // 2
        assert memory(program) - before < ALLOWANCE
