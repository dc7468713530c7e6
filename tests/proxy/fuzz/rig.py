"""A proxy and two engines that answer what a script says, in a thread of their own, for tests that try many inputs."""

import asyncio
import json
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from proxy.app import create_apps
from proxy.cli import listen
from proxy.config import ProxyConfig
from proxy.server import options
from proxy.settings import Breaker, Canary, FailurePolicy, Leg, Settings, Timeouts
from proxy.topology import ConnectorKind, Instance, Role, Topology
from tests.fakes import answers
from tests.proxy.conftest import Server
from tests.proxy.raw_engine import PROBES

T = TypeVar("T")
_LEG = Leg(connect=2.0, first_byte=1.0, idle=0.3)
SETTINGS = Settings(
    canary=Canary(enabled=False),
    failure_policy=FailurePolicy.FAIL,
    timeouts=Timeouts(prefill=_LEG, decode=_LEG, whole_answer=1.0),
    breaker=Breaker(failures=1_000_000),
    probe_interval=3600.0,
)
DEADLINE = 10.0
"""Seconds; far more than all limits together."""


@dataclass
class Script:
    """What an engine writes after it has read a request, and then."""

    pieces: list[bytes] = field(default_factory=list)
    close: bool = True
    """Else it keeps the connection and stays silent."""


class Rig:
    """``prefill`` and ``decode`` are the scripts of the next answers."""

    def __init__(self) -> None:
        self.prefill = good_prefill()
        self.decode = Script()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rig")
        self._stack = AsyncExitStack()

    def __enter__(self) -> "Rig":
        self._thread.start()
        self.run(self._build())
        return self

    def __exit__(self, *exc: object) -> None:
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the rig's loop; raises ``TimeoutError`` when it takes too long."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def ask(self, request: bytes) -> bytes:
        """Write these bytes to the proxy; all that it answers until it closes, or the client has a whole answer."""
        return self.run(asyncio.wait_for(self._ask(request), DEADLINE))

    async def _ask(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await reader.read(-1)
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()

    def in_flight(self) -> float:
        """Requests that the proxy counts as running."""
        text = self.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").partition(b"\r\n\r\n")[2]
        lines = [line for line in text.decode().splitlines() if line.startswith("duet_in_flight{")]
        assert lines
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    async def _build(self) -> None:
        ports = [await self._engine(name) for name in ("prefill", "decode")]
        instances = (
            Instance("prefill-0", Role.PREFILL, f"http://127.0.0.1:{ports[0]}"),
            Instance("decode-0", Role.DECODE, f"http://127.0.0.1:{ports[1]}"),
        )
        app = create_apps(ProxyConfig(Topology(instances, ConnectorKind.NIXL_PULL), SETTINGS)).public
        listener = self._stack.enter_context(listen("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        server = Server(options(app))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await server.up.wait()

        async def stop() -> None:
            server.should_exit = True
            await serving

        self._stack.push_async_callback(stop)

    async def _engine(self, name: str) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while await self._answer(name, reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)

        async def stop() -> None:
            server.close()

        self._stack.push_async_callback(stop)
        return server.sockets[0].getsockname()[1]

    async def _answer(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if lengths:
            await reader.readexactly(int(lengths[0].partition(b":")[2]))
        if head.startswith(PROBES):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            return True
        script = self.prefill if name == "prefill" else self.decode
        for piece in script.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if not script.close:
            await reader.read(1)
        return False


def good_prefill() -> Script:
    """KV parameters as an engine answers them."""
    kv = answers.kv_params("engine", "cmpl-1", 5600, 3, 1)
    body = json_bytes({"choices": [], "kv_transfer_params": kv})
    return Script(
        [b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body), body]
    )


def json_bytes(document: object) -> bytes:
    """As engines write it."""
    return json.dumps(document, separators=(",", ":")).encode()
