"""What the engines counted while they were measured."""

import asyncio

import pytest

from launcher.measure.driver import drive
from launcher.measure.engines import counting
from launcher.measure.load import Closed
from launcher.measure.served import measured
from launcher.measure.target import Engine, Target
from tests.fakes.engine import FakeEngine
from tests.launcher.measure.requests import prompts
from tests.ports import free_port


def target(*engines: FakeEngine) -> Target:
    told = [Engine(f"{each.role}-{number}", each.role, f"{each.url}/metrics") for number, each in enumerate(engines)]
    return Target("fakes", engines[0].url, engines[0].model, engines=tuple(told))


async def test_what_was_counted_before_is_left_out():
    async with FakeEngine() as engine:
        await drive(target(engine), prompts(4), Closed(1))
        _, counted = await counting(target(engine), drive(target(engine), prompts(5, tokens=6), Closed(1)))
    assert counted.generated == 30
    assert (counted.kv_received, counted.preemptions, counted.notes) == (0, 0, ())
    assert (counted.acceptance, counted.acceptance_length, counted.accepted_by_position) == (None, None, ())


async def test_acceptance_is_of_all_that_decode():
    async with FakeEngine("decode") as one, FakeEngine("decode") as other:

        async def work() -> None:
            one.counts |= {"spec_decode_num_drafts": 10, "spec_decode_num_draft_tokens": 40}
            one.counts |= {"spec_decode_num_accepted_tokens": 30}
            other.counts |= {"spec_decode_num_drafts": 30, "spec_decode_num_draft_tokens": 120}
            other.counts |= {"spec_decode_num_accepted_tokens": 10}
            label = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="fake",position='
            one.more_metrics = lambda: f'{label}"0"}} 9.0\n{label}"1"}} 8.0\n'
            other.more_metrics = lambda: f'{label}"0"}} 3.0\n{label}"1"}} 2.0\n'

        for each in (one, other):
            zeros = ("drafts", "draft_tokens", "accepted_tokens")
            each.counts = {f"spec_decode_num_{name}": 0 for name in zeros}
        _, counted = await counting(target(one, other), work())
    assert (counted.drafts, counted.drafted, counted.accepted) == (40, 160, 40)
    assert (counted.acceptance, counted.acceptance_length) == (0.25, 2)
    assert counted.accepted_by_position == (0.3, 0.25)


async def test_an_engine_that_does_not_tell_is_said():
    nobody = f"http://127.0.0.1:{free_port()}/metrics"
    gone = Target("x", "http://127.0.0.1:1", "m", engines=(Engine("a", "decode", nobody),))
    result, counted = await counting(gone, asyncio.sleep(0, "done"))
    assert (result, counted.generated) == ("done", None)
    assert counted.notes == (f"{nobody} did not answer (ConnectError)",)


async def test_what_the_work_raises_comes_out():
    async def work() -> None:
        raise ValueError("no")

    async with FakeEngine() as engine:
        with pytest.raises(ValueError, match="no"):
            await counting(target(engine), work())


async def test_a_proxys_page_tells_of_all_engines(tmp_path, profile):
    async def work(target: Target):
        proxy = Target("proxy", target.url, target.model, engine_metrics=f"{target.url}/metrics/engines")
        return await counting(proxy, drive(proxy, prompts(6), Closed(1)))

    samples, counted = await measured(str(profile), [], tmp_path, work)
    assert len(samples) == 6
    assert counted.kv_received is not None
