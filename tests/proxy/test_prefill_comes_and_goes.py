"""A prefill that fails, is not ready yet, or leaves."""

import asyncio

import pytest

from proxy.settings import Breaker, FailurePolicy, Leg, Settings, Timeouts
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
QUICK = Timeouts(prefill=Leg(first_byte=0.5))
NO_PAUSE = Settings(breaker=Breaker(pause=0.01, longest_pause=0.01))


async def test_however_it_fails_decode_is_not_asked_and_it_is_used_again_when_it_recovers(start):
    duet = await start(policy=FailurePolicy.FAIL, timeouts=QUICK, settings=NO_PAUSE)
    duet.prefill.faults.extend([Fault(status=500), Fault(hang=True)])
    statuses = [(await duet.client.post("/v1/completions", json=TEXT)).status_code for _ in range(2)]
    await duet.prefill.stop()
    statuses.append((await duet.client.post("/v1/completions", json=TEXT)).status_code)
    assert statuses == [500, 504, 502]
    assert duet.decode.seen == []
    await duet.prefill.start()
    while (await duet.client.post("/v1/completions", json=TEXT)).status_code != 200:
        pass
    assert await duet.metric("duet_breaker_open", engine="prefill-0") == 0
    assert len(duet.decode.seen) == 1
    await duet.idle()


@pytest.mark.parametrize("health", [503, None])
async def test_until_it_is_ready_it_gets_nothing_and_readiness_says_so(start, health):
    prefill = FakeEngine("prefill")
    prefill.health = health
    duet = await start(engines=[prefill, FakeEngine("decode")], probe_interval=0.02)
    assert (await duet.ready())["modes"] == {"pd": False, "aggregated": True}
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-bypass"] == "no_prefill"
    assert prefill.seen == []
    prefill.health = 200

    async def pd() -> bool:
        return (await duet.ready())["modes"]["pd"]

    await eventually(pd, True)
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"


async def test_a_silent_one_holds_up_only_its_own_requests(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode")]
    duet = await start(engines=engines)
    engines[0].faults.extend(Fault(hang=True) for _ in range(20))
    waiting = [asyncio.create_task(duet.client.post("/v1/completions", json=TEXT)) for _ in range(2)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for _ in range(5):
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert (answer.status_code, answer.headers["x-duet-prefill"]) == (200, "prefill-1")
    assert len(engines[0].seen) == 1
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await duet.idle()


def pair_of_one_base(**models: str) -> list[FakeEngine]:
    engines = [FakeEngine(role, model=model) for role, model in models.items()]
    for engine in engines:
        engine.base = "fake"
    return engines


ADAPTER = TEXT | {"model": "fake-lora"}


async def test_a_model_that_only_decode_has_is_prefills_404_or_served_by_decode_alone(start):
    duet = await start(engines=pair_of_one_base(prefill="fake", decode="fake-lora"))
    refused = await duet.client.post("/v1/completions", json=ADAPTER)
    assert (refused.status_code, refused.json()["error"]["type"]) == (404, "NotFoundError")
    assert duet.decode.seen == []
    alone = await duet.client.post("/v1/completions", json=ADAPTER | {"n": 2, "temperature": 1})
    assert (alone.status_code, alone.json()["model"]) == (200, "fake-lora")
    assert await duet.metric("duet_upstream_failures_total") == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_only_prefill_has_is_decodes_404(start, stream):
    duet = await start(engines=pair_of_one_base(prefill="fake-lora", decode="fake"))
    for extra in ({}, {"n": 2, "temperature": 1}):
        answer = await duet.client.post("/v1/completions", json=ADAPTER | {"stream": stream} | extra)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NotFoundError")
    assert await duet.metric("duet_upstream_failures_total") == 0
