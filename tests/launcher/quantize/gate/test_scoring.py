"""Asking a served model for its scores: by the fake engine, each token of a prompt has rank 1, or 2 by ``drift``."""

import asyncio
import json

import httpx
import pytest

from launcher.errors import QuantizeError
from launcher.quantize.gate.records import Item, Record, Task
from launcher.quantize.gate.scores import WIDTH, Scores
from launcher.quantize.gate.scoring import score
from tests.fakes.answers import error
from tests.fakes.engine import FakeEngine, Fault

RECORDS = [Record([100 + number, 3, 4, 5, 6], [(1, 5)]) for number in range(6)]
NAN = json.dumps(error("Out of range float values are not JSON compliant")).encode()


class Told:
    """Progress that is remembered."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []

    def __call__(self, title: str, done: int, of: int) -> None:
        self.steps.append((title, done, of))


async def scored(engine: FakeEngine, records=RECORDS, task: Task | None = None) -> Scores:
    return await score(engine.url, engine.model, records, task, Told())


async def test_every_record_is_scored_in_order():
    async with FakeEngine() as engine:
        engine.drift = 2
        made = await scored(engine)
    assert [each.actual.tolist() for each in made.records] == [[3, 4, 5, 6]] * 6
    assert made.records[0].logprobs.tolist() == [-1.0, -2.0, -1.0, -2.0]
    assert made.records[0].top[::WIDTH].tolist() == [3, 3, 5, 5]
    assert made.damage == ()


async def test_it_asks_for_tokens_four_at_a_time_and_tells_how_far_it_is():
    told = Told()
    async with FakeEngine() as engine:
        engine.thawed.clear()
        asking = asyncio.create_task(score(engine.url, engine.model, RECORDS, None, told))
        await engine.saw(4)
        assert engine.running == len(engine.seen) == 4
        engine.thawed.set()
        await asking
    body = json.loads(engine.seen[0].body)
    assert (body["prompt"], body["prompt_logprobs"], body["temperature"]) == ([100, 3, 4, 5, 6], 20, 0)
    assert told.steps == [("scoring records", done, 6) for done in range(7)]


async def test_numbers_that_the_engine_cannot_write_are_damage_of_that_record():
    async with FakeEngine() as engine:
        engine.faults.extend([Fault(), Fault(status=400, body=NAN)])
        made = await scored(engine, RECORDS[:1] * 4)
    (damage,) = made.damage
    assert damage.startswith("record 1: the engine has no numbers to tell, but NaN: ")
    assert [each.positions for each in made.records] == [4, 0, 4, 4]


async def test_an_engine_that_fails_at_a_record_damages_only_that():
    async with FakeEngine() as engine:
        engine.faults.append(Fault(status=500))
        made = await scored(engine)
    assert len(made.damage) == 1
    assert "the engine answered 500: " in made.damage[0]


async def test_log_probabilities_that_are_missing_are_damage():
    async with FakeEngine() as engine:
        engine.instead["/v1/completions"] = (200, b'{"choices":[{"index":0,"prompt_logprobs":null}]}')
        made = await scored(engine)
    assert made.damage[0] == "record 0: token 1 has no log-probabilities"
    assert len(made.damage) == 6


async def test_a_connection_that_breaks_is_tried_again():
    async with FakeEngine() as engine:
        engine.faults.extend([Fault(drop=True), Fault(drop=True)])
        made = await scored(engine)
    assert made.damage == ()
    assert len(engine.seen) == 8


async def test_an_engine_that_is_gone_is_no_damage():
    async with FakeEngine() as engine:
        pass
    with pytest.raises(QuantizeError, match=r"v1/completions does not answer \(ConnectError.*, 3 times\)"):
        await scored(engine)


async def test_a_refusal_ends_it_with_what_the_engine_says():
    async with FakeEngine() as engine:
        with pytest.raises(QuantizeError, match=r"refused a request with 400: .*maximum context length is 2048"):
            await scored(engine, [Record([1] * 2048, [(1, 2048)])])


async def test_something_else_than_an_engine_is_named():
    async with FakeEngine() as engine:
        engine.instead["/v1/completions"] = (200, b"hello")
        with pytest.raises(QuantizeError, match=r"does not answer as vLLM 0\.32 does .*: hello"):
            await scored(engine)


async def test_the_choice_that_is_more_likely_by_token_is_taken():
    long_but_likely = Item([10, 11], 1, ([20], [21, 22, 23]))
    async with FakeEngine() as engine:
        engine.drift = (
            2  # the prompt has two tokens: of the answer's the 1st and the 3rd are not what the model would say
        )
        made = await scored(engine, [], Task("choice", [long_but_likely, Item([10, 11], 0, ([20], [21, 22]))]))
    assert made.task is not None
    assert (made.task.kind, made.task.right, made.task.chance) == ("choice", (True, False), 0.5)
    assert json.loads(engine.seen[0].body)["prompt"] == [[10, 11, 20], [10, 11, 21, 22, 23]]


async def test_a_generated_answer_is_compared_with_the_expected_one():
    ids = [10, 11, 12]
    async with FakeEngine() as engine:
        asked = {"model": engine.model, "prompt": ids, "max_tokens": 12, "temperature": 0}
        async with httpx.AsyncClient(trust_env=False) as client:
            says = (await client.post(f"{engine.url}/v1/completions", json=asked)).json()["choices"][0]["text"]
        word = says.split()[0]
        items = [Item(ids, says), Item(ids, word)]
        made = await scored(engine, [], Task("exact", items))
    assert made.task is not None
    assert made.task.right[1] is False
    assert made.task.chance == 0


async def test_items_that_cannot_be_scored_count_as_wrong_and_are_told():
    async with FakeEngine() as engine:
        engine.faults.append(Fault(status=400, body=NAN))
        made = await scored(engine, [], Task("choice", [Item([1], 0, ([2], [3]))]))
    assert made.task is not None
    assert made.task.right == (False,)
    assert made.damage[0].startswith("item 0 of the task: the engine has no numbers")
