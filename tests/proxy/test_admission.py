"""How many requests are served at a time, and who comes next."""

import asyncio

import httpx
import pytest

from proxy.admission import Admission
from proxy.errors import Draining, Overloaded
from proxy.settings import Admission as Limits
from proxy.settings import Settings
from tests.fakes.engine import Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}


async def waiting(admission: Admission, *clients: str) -> list[asyncio.Task[None]]:
    tasks = []
    for client in clients:
        assert not admission.try_enter()
        tasks.append(asyncio.create_task(admission.wait(client)))
        await asyncio.sleep(0)
    return tasks


async def test_those_who_wait_come_in_their_order():
    admission = Admission(Limits(concurrency=1, queue=5))
    assert admission.try_enter()
    first, second = await waiting(admission, "a", "a")
    admission.leave()
    await first
    assert (admission.in_flight, admission.waiting, second.done()) == (1, 1, False)
    admission.leave()
    await second
    admission.leave()
    assert admission.in_flight == 0


async def test_clients_take_turns_however_many_requests_one_has():
    admission = Admission(Limits(concurrency=1, queue=9))
    admission.try_enter()
    order = []
    tasks = await waiting(admission, "many", "many", "many", "one", "two")
    for task, name in zip(tasks, ["many 1", "many 2", "many 3", "one", "two"], strict=True):
        task.add_done_callback(lambda _, name=name: order.append(name))
    for _ in tasks:
        admission.leave()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert order == ["many 1", "one", "two", "many 2", "many 3"]


async def test_nobody_overtakes_those_who_wait():
    admission = Admission(Limits(concurrency=1, queue=9))
    admission.try_enter()
    (first,) = await waiting(admission, "a")
    admission.leave()
    assert not admission.try_enter()
    await first


async def test_a_full_queue_refuses_at_once():
    admission = Admission(Limits(concurrency=1, queue=1))
    admission.try_enter()
    (first,) = await waiting(admission, "a")
    with pytest.raises(Overloaded) as refused:
        admission.try_enter()
    assert refused.value.retry_after >= 1
    admission.leave()
    await first


async def test_who_has_waited_too_long_is_refused_and_forgotten():
    admission = Admission(Limits(concurrency=1, queue=1, wait=0.01))
    admission.try_enter()
    assert not admission.try_enter()
    with pytest.raises(Overloaded):
        await admission.wait("a")
    assert admission.waiting == 0
    admission.leave()
    assert admission.in_flight == 0


async def test_who_gives_up_leaves_no_trace_even_when_it_was_just_let_in():
    admission = Admission(Limits(concurrency=1, queue=9))
    admission.try_enter()
    first, second = await waiting(admission, "a", "b")
    second.cancel()
    admission.leave()
    first.cancel()  # its place was given to it in this very moment
    await asyncio.gather(first, second, return_exceptions=True)
    assert (admission.in_flight, admission.waiting) == (0, 0)


async def test_closing_refuses_those_who_wait_and_all_who_come():
    admission = Admission(Limits(concurrency=1, queue=9))
    admission.try_enter()
    (first,) = await waiting(admission, "a")
    admission.close()
    with pytest.raises(Draining):
        await first
    with pytest.raises(Draining):
        admission.try_enter()
    idle = asyncio.create_task(admission.until_idle())
    admission.leave()
    await idle


async def test_too_many_requests_are_429_with_retry_after_and_health_still_answers(start):
    duet = await start(settings=Settings(admission=Limits(concurrency=1, queue=0)))
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    async with duet.client.stream("POST", "/v1/completions", json=TEXT | {"stream": True}) as running:
        events = running.aiter_lines()
        await anext(events)
        refused = await duet.client.post("/v1/completions", json=TEXT)
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "RateLimitError")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await duet.client.get("/health")).status_code == 200
        assert await duet.metric("duet_refused_total", reason="Overloaded") == 1
        for _ in range(20):
            gate.release()
        async for _ in events:
            pass
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200


async def test_a_client_that_leaves_the_queue_is_not_served(start):
    duet = await start(settings=Settings(admission=Limits(concurrency=1, queue=5)))
    duet.prefill.faults.append(Fault(hang=True))
    hanging = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
    await duet.prefill.saw(1)
    with pytest.raises(httpx.ReadTimeout):
        await duet.client.post("/v1/completions", json=TEXT, timeout=0.2)
    await eventually(lambda: duet.metric("duet_client_disconnects_total"), 1)
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
    assert len(duet.prefill.seen) == 2


async def test_bodies_that_need_too_much_memory_together_are_429_until_one_is_done(start):
    large = TEXT | {"prompt": "x" * 3000}
    duet = await start(settings=Settings(admission=Limits(memory=4000)))
    duet.prefill.faults.append(Fault(hang=True))
    hanging = asyncio.create_task(duet.client.post("/v1/completions", json=large))
    await duet.prefill.saw(1)
    for path in ("/v1/completions", "/echo"):
        refused = await duet.client.post(path, json=large)
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    await duet.idle()
    assert (await duet.client.post("/v1/completions", json=large)).status_code == 200
    assert await duet.metric("duet_refused_total", reason="NoRoom") == 2


async def test_what_was_slow_before_anybody_waited_says_nothing_of_the_pace(monkeypatch):
    now = 0.0
    monkeypatch.setattr("proxy.admission.time.monotonic", lambda: now)
    admission = Admission(Limits(concurrency=1, queue=9, wait=30))
    admission.try_enter()
    admission.leave()
    now = 3600.0  # an hour without any request
    admission.try_enter()
    (first,) = await waiting(admission, "a")
    now += 1
    admission.leave()
    await first
    (second, third) = await waiting(admission, "a", "b")  # else: refused, since an hour is more than 30 s
    admission.leave()
    admission.leave()
    await asyncio.gather(second, third)


async def test_a_slow_moment_does_not_close_the_queue_for_ever(monkeypatch):
    now = 0.0
    monkeypatch.setattr("proxy.admission.time.monotonic", lambda: now)
    admission = Admission(Limits(concurrency=1, queue=9, wait=30))
    admission.try_enter()
    admission.leave()
    admission.try_enter()
    (last,) = await waiting(admission, "a")
    now += 100
    admission.leave()
    await last
    for _ in range(20):
        (last,) = await waiting(admission, "a")
        now += 1
        admission.leave()
        await last
    await waiting(admission, "a", "b")
    admission.leave()
    admission.leave()
    admission.leave()
    assert admission.in_flight == 0
