"""The HTTP client's failures in our terms."""

import asyncio

import pytest

from proxy.engine import TRANSLATION, EngineClient
from proxy.errors import EngineCut, EngineTimeout, EngineUnreachable
from proxy.settings import Leg
from proxy.topology import Instance, Role
from proxy.wire import errors as wire
from tests.fakes.engine import FakeEngine, Fault


def test_every_error_of_the_client_is_translated():
    assert set(TRANSLATION) == set(wire.WireError.__subclasses__())
    assert not [leaf for leaf in TRANSLATION if leaf.__subclasses__()]


async def ask(engine: FakeEngine, limits: Leg, body: bytes = b'{"prompt":"x","stream":true}') -> bytes:
    client = EngineClient()
    headers = [(b"content-type", b"application/json")]
    try:
        instance = Instance("decode-0", Role.DECODE, engine.url)
        upstream = await client.open(instance, "POST", "/v1/completions", headers, body, limits)
        try:
            return await upstream.read()
        finally:
            await upstream.aclose()
    finally:
        await client.aclose()


async def test_an_answer_comes_as_it_was_written():
    async with FakeEngine() as engine:
        assert (await ask(engine, Leg())).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(stall_after=0)])
async def test_no_first_byte_in_time_is_a_timeout(fault):
    async with FakeEngine() as engine:
        engine.faults.append(fault)
        with pytest.raises(EngineTimeout):
            await ask(engine, Leg(first_byte=0.2))
        await asyncio.wait_for((await engine.saw()).left.wait(), 5)


async def test_silence_between_chunks_is_a_timeout_of_its_own():
    async with FakeEngine() as engine:
        engine.faults.append(Fault(stall_after=2))
        with pytest.raises(EngineTimeout):
            await ask(engine, Leg(idle=0.05))


@pytest.mark.parametrize("fault", [Fault(cut_after=0), Fault(cut_after=3)])
async def test_a_broken_connection_is_a_cut(fault):
    async with FakeEngine() as engine:
        engine.faults.append(fault)
        with pytest.raises(EngineCut):
            await ask(engine, Leg())


async def test_a_closed_port_is_unreachable():
    async with FakeEngine() as engine:
        pass
    with pytest.raises(EngineUnreachable, match="decode-0"):
        await ask(engine, Leg())
