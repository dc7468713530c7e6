"""KV that prefill keeps for a request that nobody takes over is given back; never while somebody may be reading it."""

import asyncio
import json
import socket
from contextlib import contextmanager
from dataclasses import replace

import pytest

from proxy.settings import FailurePolicy, Leg, Timeouts
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
DRAINED = "decode-1"


async def leave(asking: "asyncio.Task[object]") -> None:
    asking.cancel()
    await asyncio.wait([asking])


async def given_back(duet) -> tuple[float, float]:
    return await duet.metric("duet_kv_released_total"), await duet.metric("duet_kv_stranded_total")


@pytest.fixture
async def with_a_drained_one(start):
    """Two decode instances, of which the second gets no requests."""
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, follow=True, timeouts=Timeouts(decode=Leg(connect=0.2)))
    await duet.reconfigure(lambda config: replace(config, draining=(DRAINED,)))
    return duet, engines


@contextmanager
def silent(port: int):
    """A port on which connections are never accepted."""
    with socket.socket() as listener, socket.socket() as first:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        first.connect(("127.0.0.1", port))  # the queue is full: the system drops whatever else comes
        yield


@pytest.mark.parametrize("stream", [True, False])
async def test_what_prefill_answers_when_its_client_has_just_left_is_given_back(duet, stream):
    answers = asyncio.Event()
    duet.prefill.faults.append(Fault(wait=answers))
    asking = asyncio.create_task(duet.client.post("/v1/completions", json={**TEXT, "stream": stream}))
    await duet.prefill.saw()
    await leave(asking)
    await eventually(lambda: duet.metric("duet_client_disconnects_total"), 1)
    answers.set()
    await eventually(lambda: given_back(duet), (1, 0))
    (release,) = duet.decode.seen
    assert json.loads(release.body)["model"] == "duet-release-kv"
    assert len(duet.decode.freed) == 1


async def test_a_prefill_that_computes_on_is_cut_off_and_keeps_nothing(duet, monkeypatch):
    monkeypatch.setattr("proxy.release.PREFILL_PATIENCE", 0.01)
    duet.prefill.faults.append(Fault(hang=True))
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
    seen = await duet.prefill.saw()
    await leave(asking)
    await asyncio.wait_for(seen.left.wait(), 5)
    assert await given_back(duet) == (0, 0)
    assert duet.decode.seen == []


async def test_what_decode_was_sent_is_left_to_decode(duet):
    duet.decode.faults.append(Fault(hang=True))
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
    seen = await duet.decode.saw()
    await leave(asking)
    await asyncio.wait_for(seen.left.wait(), 5)
    assert await given_back(duet) == (0, 0)
    assert len(duet.decode.seen) == 1


async def test_a_request_that_was_just_sent_is_not_cut_off_before_decode_can_have_seen_it(duet, monkeypatch):
    monkeypatch.setattr("proxy.release.DECODE_PATIENCE", 600.0)
    monkeypatch.setattr("proxy.release.LAST_RELEASES", 0.01)
    answers = asyncio.Event()
    duet.decode.faults.append(Fault(wait=answers))
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
    seen = await duet.decode.saw()
    await leave(asking)
    await eventually(lambda: duet.metric("duet_client_disconnects_total"), 1)
    assert not seen.left.is_set()


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=503), Fault(cut_after=1), Fault(status=422)])
async def test_what_decode_failed_on_or_refused_is_left_to_decode(duet, fault):
    duet.decode.faults.append(fault)
    await duet.client.post("/v1/completions", json=TEXT)
    await duet.client.post("/v1/completions", json=TEXT)
    assert await given_back(duet) == (0, 0)


async def test_when_the_client_leaves_while_decode_is_connected_to_another_one_gives_it_back(with_a_drained_one):
    duet, (prefill, decode, drained) = with_a_drained_one
    await decode.stop()
    with silent(decode.port):
        asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
        await prefill.saw()
        while not asking.done() and (await duet.ready())["instances"][1]["in_flight"] == 0:
            pass
        await leave(asking)
        await eventually(lambda: given_back(duet), (1, 0))
    assert len(drained.freed) == 1


@pytest.mark.parametrize("policy", list(FailurePolicy))
@pytest.mark.parametrize("quiet", [True, False])
async def test_when_no_decode_can_be_asked_one_that_drains_gives_it_back(start, policy, quiet):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    timeouts = Timeouts(decode=Leg(connect=0.2))
    duet = await start(engines=engines, follow=True, policy=policy, timeouts=timeouts)
    await duet.reconfigure(lambda config: replace(config, draining=(DRAINED,)))
    _, decode, drained = engines
    await decode.stop()
    if quiet:
        with silent(decode.port):
            assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 504
            await eventually(lambda: given_back(duet), (1, 0))
    else:
        assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 502
        await eventually(lambda: given_back(duet), (1, 0))
    assert len(drained.freed) == 1


async def test_kv_that_nobody_can_give_back_is_counted_as_stranded(duet):
    await duet.decode.stop()
    await duet.client.post("/v1/completions", json=TEXT)
    await eventually(lambda: given_back(duet), (0, 1))


async def test_an_engine_that_does_not_refuse_has_given_nothing_back(with_a_drained_one):
    duet, (_, decode, drained) = with_a_drained_one
    drained.faults.append(Fault(status=401))
    await decode.stop()
    await duet.client.post("/v1/completions", json=TEXT)
    await eventually(lambda: given_back(duet), (0, 1))


async def test_the_key_of_the_client_is_shown_to_the_engine_that_gives_back(with_a_drained_one):
    duet, (_, decode, drained) = with_a_drained_one
    await decode.stop()
    await duet.client.post("/v1/completions", json=TEXT, headers={"authorization": "Bearer mine"})
    await eventually(lambda: given_back(duet), (1, 0))
    (release,) = drained.seen
    assert release.header("authorization") == "Bearer mine"


async def test_too_many_at_a_time_are_left_to_their_lease(with_a_drained_one, monkeypatch):
    monkeypatch.setattr("proxy.release.MOST_TASKS", 0)
    duet, (_, decode, drained) = with_a_drained_one
    await decode.stop()
    await duet.client.post("/v1/completions", json=TEXT)
    await eventually(lambda: given_back(duet), (0, 1))
    assert drained.seen == []
