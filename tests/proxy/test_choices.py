"""Where requests go, seen from outside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proxy.settings import ConditionalPD, Policy, Selection, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

SYSTEM = {"role": "system", "content": "Answer in few words. " * 40}
LONG = "one two three four " * 200
"""About 950 tokens."""


def engines(prefills: int, decodes: int) -> list[FakeEngine]:
    return [FakeEngine("prefill") for _ in range(prefills)] + [FakeEngine("decode") for _ in range(decodes)]


def selection(**chosen: object) -> Settings:
    return Settings(selection=Selection(**chosen))


def body(prompt: object, **more: object) -> dict:
    return {"model": "fake", "prompt": prompt, "max_tokens": 2, **more}


async def ask(duet, prompt: object, headers: dict[str, str] | None = None) -> tuple[str, str]:
    """The instances that served a prompt."""
    answer = await duet.client.post("/v1/completions", json=body(prompt), headers=headers)
    assert answer.status_code == 200
    return answer.headers["x-duet-prefill"], answer.headers["x-duet-decode"]


async def chat(duet, *messages: dict) -> str:
    answer = await duet.client.post("/v1/chat/completions", json={"model": "fake", "messages": messages})
    return answer.headers["x-duet-prefill"]


@asynccontextmanager
async def held(duet, chosen: list[FakeEngine], prompts: list[object]) -> AsyncIterator[None]:
    """These prompts, sent one after the other, are being prefilled and do not end."""
    async with asyncio.TaskGroup() as tasks:
        sent = []
        for prompt in prompts:
            before = [len(engine.seen) for engine in chosen]
            for engine in chosen:
                engine.faults.append(Fault(hang=True))
            sent.append(tasks.create_task(duet.client.post("/v1/completions", json=body(prompt))))
            arrivals = [asyncio.ensure_future(engine.saw(n + 1)) for engine, n in zip(chosen, before, strict=True)]
            _, waiting = await asyncio.wait(arrivals, return_when=asyncio.FIRST_COMPLETED)
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for engine in chosen:
                engine.faults.clear()
        yield
        for task in sent:
            task.cancel()


async def test_by_default_equals_take_turns(start):
    duet = await start(engines=engines(3, 1))
    assert len({(await ask(duet, LONG))[0] for _ in range(3)}) == 3


async def test_the_same_prefix_goes_to_the_same_prefill(start):
    duet = await start(engines=engines(3, 1), settings=selection(prefill=Policy.PREFIX_AFFINITY))
    assert len({(await ask(duet, LONG + str(i)))[0] for i in range(6)}) == 1


async def test_a_turn_goes_where_the_turns_before_it_went(start):
    duet = await start(engines=engines(3, 1), settings=selection(prefill=Policy.PREFIX_AFFINITY))
    chats = [[{"role": "user", "content": f"Conversation {i}. {LONG}"}] for i in range(3)]
    first = [await chat(duet, *messages) for messages in chats]
    assert len(set(first)) == 3
    for turn in range(3):
        for messages in reversed(chats):
            messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"{turn}: why? {LONG}"}]
        assert [await chat(duet, *messages) for messages in chats] == first


async def test_new_conversations_with_the_same_short_system_prompt_spread(start):
    duet = await start(engines=engines(3, 1), settings=selection(prefill=Policy.PREFIX_AFFINITY))
    questions = [{"role": "user", "content": f"{i}. {LONG}"} for i in range(3)]
    assert len({await chat(duet, SYSTEM, question) for question in questions}) == 3


async def test_a_hot_prefix_spills_over(start):
    started = engines(2, 1)
    duet = await start(engines=started, settings=selection(prefill=Policy.PREFIX_AFFINITY))
    async with held(duet, started[:2], [LONG] * 4):
        assert sorted(len(engine.seen) for engine in started[:2]) == [1, 3]


async def test_a_session_stays_at_one_instance_when_another_dies(start):
    started = engines(1, 3)
    duet = await start(engines=started, settings=selection(decode=Policy.SESSION_AFFINITY))
    mine = {"x-session-id": "mine"}
    _, home = await ask(duet, "one", mine)
    other = next(i for i in range(3) if f"decode-{i}" != home)
    await started[1 + other].stop()
    assert {(await ask(duet, f"turn {i}", mine))[1] for i in range(4)} == {home}


async def test_a_session_can_be_named_in_the_body(start):
    duet = await start(engines=engines(1, 3), settings=selection(decode=Policy.SESSION_AFFINITY))
    answers = [await duet.client.post("/v1/completions", json=body("x", session_id="mine")) for _ in range(4)]
    assert len({answer.headers["x-duet-decode"] for answer in answers}) == 1


async def test_two_proxies_send_a_session_to_the_same_instance(start):
    settings = selection(decode=Policy.SESSION_AFFINITY)
    one, other = [await start(engines=engines(1, 4), settings=settings) for _ in range(2)]
    sessions = [{"x-session-id": str(i)} for i in range(10)]
    assert [await ask(one, "x", each) for each in sessions] == [await ask(other, "x", each) for each in sessions]


async def test_aggregated_instances_are_chosen_by_the_policy_for_decode(start):
    aggregated = [FakeEngine("aggregated") for _ in range(3)]
    duet = await start(engines=aggregated, settings=selection(decode=Policy.PREFIX_AFFINITY))
    answers = [await duet.client.post("/v1/completions", json=body(LONG)) for _ in range(3)]
    assert len({answer.headers["x-duet-decode"] for answer in answers}) == 1


async def test_prefill_and_decode_have_policies_of_their_own(start):
    settings = selection(prefill=Policy.ROUND_ROBIN, decode=Policy.SESSION_AFFINITY)
    duet = await start(engines=engines(3, 3), settings=settings)
    served = [await ask(duet, LONG, {"x-session-id": "mine"}) for _ in range(3)]
    assert len({prefill for prefill, _ in served}) == 3
    assert len({decode for _, decode in served}) == 1


async def test_short_prompts_do_not_wait_behind_a_long_one(start):
    started = engines(2, 1)
    duet = await start(engines=started, settings=selection(prefill=Policy.TTFT))
    async with held(duet, started[:2], [LONG * 50, "short", "short too", "and one more"]):
        assert sorted(len(engine.seen) for engine in started[:2]) == [1, 3]


async def test_the_queue_that_ttft_steers_by_is_shown(start):
    started = engines(2, 1)
    duet = await start(engines=started, settings=selection(prefill=Policy.TTFT))
    async with held(duet, started[:1], [LONG]):
        assert await duet.metric("duet_prefill_queue_seconds", engine="prefill-0") > 0
        assert await duet.metric("duet_prefill_queue_seconds", engine="prefill-1") == 0


async def test_an_instance_that_was_away_has_nothing_cached(start):
    started = engines(2, 1)
    settings = selection(prefill=Policy.PREFIX_AFFINITY)
    duet = await start(engines=started, settings=settings, probe_interval=0.05)
    home, _ = await ask(duet, LONG)
    engine = started[int(home[-1])]
    other = f"prefill-{1 - int(home[-1])}"
    await engine.stop()
    await eventually(lambda: duet.metric("duet_instance_healthy", engine=home), 0)
    assert (await ask(duet, LONG))[0] == other
    await engine.start()
    await eventually(lambda: duet.metric("duet_instance_healthy", engine=home), 1)
    assert {(await ask(duet, LONG))[0] for _ in range(3)} == {other}


async def sent(duet, prompt: object) -> tuple[str, str | None]:
    answer = await duet.client.post("/v1/completions", json=body(prompt))
    assert answer.status_code == 200
    return answer.headers["x-duet-path"], answer.headers.get("x-duet-bypass")


@pytest.mark.parametrize("prompt", ["short", [1] * 499])
async def test_a_short_prompt_skips_prefill(start, prompt):
    duet = await start(settings=Settings(pd=ConditionalPD(shorter_than=500)))
    assert await sent(duet, prompt) == ("aggregated", "short_prompt")
    assert not duet.prefill.seen
    assert await duet.metric("duet_pd_bypassed_total", reason="short_prompt") == 1


@pytest.mark.parametrize("prompt", [LONG, [1] * 500])
async def test_a_long_prompt_does_not(start, prompt):
    duet = await start(settings=Settings(pd=ConditionalPD(shorter_than=500)))
    assert await sent(duet, prompt) == ("pd", None)


async def test_a_prompt_that_decode_has_mostly_cached_skips_prefill(start):
    started = engines(1, 2)
    settings = Settings(selection=Selection(decode=Policy.PREFIX_AFFINITY), pd=ConditionalPD(uncached_shorter_than=200))
    duet = await start(engines=started, settings=settings)
    assert await sent(duet, LONG) == ("pd", None)
    assert await sent(duet, LONG + "and this") == ("aggregated", "cached_prompt")
    assert await sent(duet, "new" + LONG) == ("pd", None)
    assert [len(engine.seen) for engine in started] == [2, 2, 1]


async def test_an_idle_decode_serves_alone_and_a_busy_one_does_not(start):
    duet = await start(settings=Settings(pd=ConditionalPD(idle_decode=True)))
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    async with duet.client.stream("POST", "/v1/completions", json=body(LONG, stream=True)) as first:
        assert first.headers["x-duet-bypass"] == "idle_decode"
        assert await sent(duet, LONG) == ("pd", None)
        gate.release()
        gate.release()
        gate.release()
        await first.aread()
    await duet.idle()
    assert await sent(duet, LONG) == ("aggregated", "idle_decode")


async def test_without_decode_a_threshold_changes_nothing(start):
    duet = await start(engines=[FakeEngine("prefill")], settings=Settings(pd=ConditionalPD(shorter_than=500)))
    assert (await duet.client.post("/v1/completions", json=body("short"))).status_code == 503
