"""Measuring a served model's speed: the same streams for both sides, several at once."""

import json

import pytest

from launcher.errors import QuantizeError
from launcher.quantize.gate.speed import measure
from tests.fakes.engine import FakeEngine, Fault

PROMPTS = [[number, 2, 3] for number in range(50, 60)]


async def measured(engine: FakeEngine, prompts=PROMPTS):
    return await measure(engine.url, engine.model, prompts, lambda *_: None)


async def test_requests_are_timed_alone_and_together_after_a_warm_up():
    async with FakeEngine() as engine:
        made = await measured(engine)
    assert (len(made.alone), len(made.together), made.concurrency) == (8, 24, 4)
    assert len(engine.seen) == 2 + 8 + 24
    assert all(each.tokens == 32 and 0 < each.ttft <= each.total for each in (*made.alone, *made.together))
    body = json.loads(engine.seen[2].body)
    assert (body["prompt"], body["max_tokens"], body["ignore_eos"], body["temperature"]) == ([52, 2, 3], 32, True, 0)


async def test_long_prompts_are_cut():
    async with FakeEngine() as engine:
        await measured(engine, [[7] * 1000])
    assert {len(json.loads(each.body)["prompt"]) for each in engine.seen} == {128}


async def test_a_slow_machine_gets_fewer_requests(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("launcher.quantize.gate.speed._BUDGET", -1.0)
    async with FakeEngine() as engine:
        made = await measured(engine)
    assert (len(made.alone), len(made.together)) == (4, 8)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=503), "answered 503 while speed was measured: .*scripted"),
        (Fault(cut_after=2), "broke off an answer while speed was measured"),
        (Fault(first_event=b'data: {"choices":[]}\n\n'), "gave an empty answer"),
        (Fault(first_event=b"data: {nope\n\n"), "broke off an answer"),
    ],
)
async def test_an_answer_that_is_none_ends_it(fault, said):
    async with FakeEngine() as engine:
        engine.faults.append(fault)
        with pytest.raises(QuantizeError, match=said):
            await measured(engine)


async def test_nothing_can_be_measured_without_prompts():
    async with FakeEngine() as engine:
        with pytest.raises(QuantizeError, match="without prompts"):
            await measured(engine, [])
