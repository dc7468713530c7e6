"""The hook before an engine ends, as a process beside fake engines."""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from tests.fakes.engine import FakeEngine, Fault
from tests.helm.charts import CHART

_PATIENCE = 30


class Drain:
    """The hook's process, and what it tells the engine's log."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.told = ""
        """As far as it was waited for."""

    async def tells(self, what: str) -> None:
        """Wait until it has told this."""
        assert self._process.stdout is not None
        async with asyncio.timeout(_PATIENCE):
            while what not in self.told:
                line = await self._process.stdout.readline()
                assert line, f"{what!r} is not in {self.told!r}"
                self.told += line.decode()

    async def end(self) -> None:
        """Wait until it has ended, well."""
        said, errors = await self._process.communicate()
        self.told += said.decode()
        assert (self._process.returncode, errors) == (0, b"")

    def goes_on(self) -> bool:
        """Whether it still waits."""
        return self._process.returncode is None


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """Ends engines."""
    async with AsyncExitStack() as stack:
        yield stack


async def _drain(port: int, role: str, *, within: float = _PATIENCE, log: str = "/dev/stdout") -> Drain:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(CHART / "files/drain.py"), "--port", str(port), "--role", role, "--log", log),
        *("--settle", "0", "--every", "0.02", "--within", str(within)),
        stdout=PIPE,
        stderr=PIPE,
    )
    return Drain(process)


def _work(client: httpx.AsyncClient, engine: FakeEngine) -> asyncio.Task[httpx.Response]:
    body = {"model": "fake", "prompt": "hello", "max_tokens": 2}
    return asyncio.create_task(client.post(f"http://127.0.0.1:{engine.port}/v1/completions", json=body))


async def test_it_waits_for_what_runs(stack: AsyncExitStack):
    engine = await stack.enter_async_context(FakeEngine("decode"))
    client = await stack.enter_async_context(httpx.AsyncClient(timeout=_PATIENCE))
    finish = asyncio.Event()
    engine.faults.append(Fault(wait=finish))
    work = _work(client, engine)
    await engine.saw()
    hook = await _drain(engine.port, "decode")
    await hook.tells("1 requests")
    assert hook.goes_on()
    finish.set()
    assert (await work).status_code == 200
    await hook.end()
    assert "nothing is left after" in hook.told


async def test_it_looks_three_times_before_it_believes_it(stack: AsyncExitStack):
    engine = await stack.enter_async_context(FakeEngine("decode"))
    await (await _drain(engine.port, "decode")).end()
    assert engine.looks == 3


async def test_prefill_stays_until_its_kv_was_read(stack: AsyncExitStack):
    engine = await stack.enter_async_context(FakeEngine("prefill"))
    engine.usage = lambda: 0.25
    hook = await _drain(engine.port, "prefill")
    await hook.tells("25.0% of its KV cache waits for decode")
    assert hook.goes_on()
    engine.usage = lambda: 0.0
    await hook.end()


async def test_decode_does_not_wait_for_its_own_kv(stack: AsyncExitStack):
    engine = await stack.enter_async_context(FakeEngine("decode"))
    engine.usage = lambda: 0.25
    await (await _drain(engine.port, "decode")).end()


async def test_an_engine_that_does_not_tell_is_given_its_time(stack: AsyncExitStack):
    engine = await stack.enter_async_context(FakeEngine("prefill"))
    engine.usage = lambda: None
    hook = await _drain(engine.port, "prefill", within=0.1)
    await hook.end()
    assert "it does not tell what its KV cache holds" in hook.told
    assert "time is up after 0.1 s" in hook.told


@pytest.mark.parametrize(
    "answer", [(500, b"no"), (200, b"nothing of requests"), (200, b"vllm:num_requests_running x\n")]
)
async def test_nonsense_ends_with_the_time_too(stack: AsyncExitStack, answer: tuple[int, bytes]):
    engine = await stack.enter_async_context(FakeEngine("decode"))
    engine.instead["/metrics"] = answer
    hook = await _drain(engine.port, "decode", within=0.1)
    await hook.end()
    assert "it does not tell" in hook.told


async def test_an_engine_that_is_gone_is_not_waited_for():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        hook = await _drain(free.getsockname()[1], "prefill")
        await hook.end()
    assert "nothing is left" in hook.told


async def test_a_log_that_cannot_be_written_stops_nothing(stack: AsyncExitStack, tmp_path: Path):
    engine = await stack.enter_async_context(FakeEngine("decode"))
    await (await _drain(engine.port, "decode", log=str(tmp_path))).end()
    assert engine.looks == 3
