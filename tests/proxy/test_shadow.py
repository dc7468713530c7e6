"""Copies of requests to another pool: clients notice nothing, and what comes of them is measured."""

import asyncio
import json
from dataclasses import replace

import pytest

from proxy.endpoint import Endpoint
from proxy.experiment.likeness import same_texts
from proxy.settings import Breaker, Settings
from proxy.split import Experiment, Split
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import Duet, eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
STREAM = TEXT | {"stream": True, "stream_options": {"include_usage": True}}
SHADOW = Split("copies", {"main": 100}, shadow="int8", experiment=Experiment("main", "int8", ttft=60))


async def begin(start, split: Split = SHADOW) -> Duet:
    """A proxy whose split is in force before two pools."""
    settings = Settings(breaker=Breaker(pause=0.01, longest_pause=0.01))
    engines = [FakeEngine("aggregated"), FakeEngine("aggregated", pool="int8")]
    duet = await start(engines=engines, follow=True, settings=settings)
    await duet.reconfigure(lambda config: replace(config, split=split))

    async def in_force() -> bool:
        return (await duet.client.get("/experiment")).json()["split"] is not None

    await eventually(in_force, True)
    return duet


async def arm(duet: Duet, name: str, what: str = "requests") -> int:
    return (await duet.client.get("/experiment")).json()["arms"][name][what]


@pytest.mark.parametrize("body", [TEXT, STREAM], ids=["whole", "streamed"])
async def test_each_request_is_copied_and_measured_in_both_pools(start, body):
    duet = await begin(start)
    for session in range(3):
        answer = await duet.client.post("/v1/completions", json=body, headers={"x-session-id": f"{session}"})
        assert answer.headers["x-duet-arm"] == answer.headers["x-duet-pool"] == "main"
    await eventually(lambda: arm(duet, "int8"), 3)
    assert await arm(duet, "main") == await arm(duet, "int8", "good") == 3
    original, copy = duet.prefill.seen[0], await duet.decode.saw()
    assert json.loads(original.body) == json.loads(copy.body)
    assert original.header("x-request-id") != copy.header("x-request-id")
    assert await duet.metric("duet_requests_total") == 3
    assert await duet.metric("duet_arm_requests_total", arm="int8", outcome="ok") == 3
    ttft = (await duet.client.get("/experiment")).json()["metrics"][2]
    assert ttft["requests"] == ([3, 3] if body is STREAM else [0, 0])


@pytest.mark.parametrize(
    "fault",
    [Fault(status=500), Fault(status=400), Fault(end_after=1), Fault(cut_after=1), Fault(hang=True)],
    ids=["error", "rejected", "ended", "cut", "hangs"],
)
async def test_what_becomes_of_a_copy_does_not_concern_the_client(start, fault):
    duet = await begin(start)
    duet.decode.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json=STREAM)
    assert answer.status_code == 200
    assert answer.text.rstrip().endswith("data: [DONE]")
    await duet.decode.saw()
    if fault.hang:
        return  # the proxy ends all the same
    if fault.status == 400:
        await eventually(lambda: arm(duet, "int8", "excluded"), {"rejected": 1})
    else:
        await eventually(lambda: arm(duet, "int8", "failed"), 1)


async def test_a_pool_that_is_down_fails_copies_and_nothing_else(start):
    duet = await begin(start)
    await duet.decode.stop()
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
    await eventually(lambda: arm(duet, "int8", "failed"), 1)
    assert await arm(duet, "main", "good") == 1


async def test_there_are_only_so_many_copies_at_once_and_the_others_are_counted(start):
    duet = await begin(start, replace(SHADOW, shadow_at_once=1))
    gate = asyncio.Event()
    duet.decode.faults.append(Fault(wait=gate))
    for _ in range(3):
        assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
    assert await duet.metric("duet_shadow_not_copied_total", pool="int8") == 2
    assert await arm(duet, "main") == 1  # that which has a copy
    gate.set()
    await eventually(lambda: arm(duet, "int8"), 1)


async def test_a_part_of_the_sessions_is_copied(start):
    duet = await begin(start, replace(SHADOW, shadow_percent=50))
    for session in range(60):
        await duet.client.post("/v1/completions", json=TEXT, headers={"x-session-id": f"{session}"})
    copied = await arm(duet, "main")
    assert 15 < copied < 45
    await eventually(lambda: arm(duet, "int8"), copied)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
async def test_texts_without_chance_are_compared(start, path):
    duet = await begin(start)
    body = {"model": "fake", "max_tokens": 5, "temperature": 0}
    body |= (
        {"prompt": "one two"} if path.endswith("1/completions") else {"messages": [{"role": "user", "content": "x"}]}
    )
    assert (await duet.client.post(path, json=body)).status_code == 200
    await eventually(lambda: arm(duet, "int8", "compared_texts"), 1)
    assert await arm(duet, "int8", "same_texts") == 1
    duet.decode.instead[path] = (200, b'{"choices": [{"text": "else", "message": {"content": "else"}}]}')
    await duet.client.post(path, json=body)
    await eventually(lambda: arm(duet, "int8", "compared_texts"), 2)
    assert await arm(duet, "int8", "same_texts") == 1
    told = (await duet.client.get("/experiment")).json()["reasons"]
    assert "1 of 2 copies without chance had the same text as the original" in told
    for chance in ({"temperature": 0.5}, {"temperature": 0, "stream": True}):
        await duet.client.post(path, json=body | chance)
    await eventually(lambda: arm(duet, "int8"), 4)
    assert await arm(duet, "int8", "compared_texts") == 2


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"content": "a", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}, {"content": "a"}, False),
        ({"content": "a", "tool_calls": [{"id": "1"}]}, {"content": "a", "tool_calls": [{"id": "2"}]}, True),
        ({"content": "a", "id": 1}, {"content": "a", "id": 2}, True),
    ],
)
def test_tool_calls_are_part_of_a_text_and_ids_are_not(first, second, same):
    bodies = [json.dumps({"choices": [{"message": each}]}).encode() for each in (first, second)]
    assert same_texts(Endpoint.CHAT, *bodies) is same


def test_what_is_no_answer_of_the_usual_shape_is_compared_as_it_is():
    assert same_texts(Endpoint.CHAT, b"x", b"x")
    assert not same_texts(Endpoint.CHAT, b"x", b'{"choices": []}')


async def test_what_an_engine_keeps_is_not_asked_twice(start):
    duet = await begin(start)
    body = {"model": "fake", "input": "x", "previous_response_id": "resp_1"}
    await duet.client.post("/v1/responses", json=body)
    await duet.client.post("/v1/completions", json=TEXT)
    assert (await duet.decode.saw()).path == "/v1/completions"
