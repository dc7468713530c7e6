"""Requests of tasks with like acceptance go to the same pool, so that one kind does not slow the other's batch."""

import json

import httpx
import pytest

from proxy.acceptance import Acceptance
from proxy.completion import parse
from proxy.endpoint import Endpoint
from proxy.pools import Between, PoolRule, PoolSettings, When
from proxy.settings import Settings
from proxy.task import task_of
from proxy.usage import Drafted, drafted_of
from tests.fakes.completions import drafted
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import Duet

RULES = (PoolRule("plain", When(expected_acceptance=Between(max=0.5))),)
CHAT = {"model": "fake", "max_tokens": 5}


def settings(explore: int = 0) -> Settings:
    return Settings(pools=PoolSettings(RULES, explore=explore))


def engines() -> list[FakeEngine]:
    """One that speculates, well for code and badly for poems, and one that does not."""
    speculating, plain = FakeEngine("aggregated"), FakeEngine("aggregated", pool="plain")
    speculating.tells_drafts = lambda body: drafted(50, 200, 180 if "code" in str(body) else 10)
    return [speculating, plain]


async def ask(duet: Duet, task: str, *, headers: dict[str, str] | None = None, **more: object) -> httpx.Response:
    system = {"role": "system", "content": f"You write {task}."}
    body = CHAT | {"messages": [system, {"role": "user", "content": "Go on."}]} | more
    return await duet.client.post("/v1/chat/completions", json=body, headers=headers)


async def test_a_task_whose_drafts_are_refused_leaves_the_pool_that_speculates(start):
    duet = await start(engines=engines(), settings=settings())

    pools = [[(await ask(duet, task)).headers["x-duet-pool"] for _ in range(3)] for task in ("poems", "code")]

    assert pools == [["main", "plain", "plain"], ["main", "main", "main"]]


async def test_streams_tell_it_too_when_they_tell_their_usage(start):
    duet = await start(engines=engines(), settings=settings())
    streamed = {"stream": True, "stream_options": {"include_usage": True}}

    assert (await ask(duet, "poems", **streamed)).headers["x-duet-pool"] == "main"
    assert (await ask(duet, "poems", **streamed)).headers["x-duet-pool"] == "plain"


async def test_a_client_may_name_its_task(start):
    duet = await start(engines=engines(), settings=settings())
    hot = {"x-duet-task": "hot"}

    await ask(duet, "poems", headers=hot)

    assert (await ask(duet, "code", headers=hot)).headers["x-duet-pool"] == "plain"
    assert (await ask(duet, "code")).headers["x-duet-pool"] == "main"


async def test_now_and_then_a_task_is_measured_again(start):
    duet = await start(engines=engines(), settings=settings(explore=4))

    pools = [(await ask(duet, "poems")).headers["x-duet-pool"] for _ in range(9)]

    assert pools == ["main", "plain", "plain", "main", "plain", "plain", "plain", "main", "plain"]


async def test_drafted_tokens_are_counted_by_temperature(start):
    duet = await start(engines=engines(), settings=Settings())

    for temperature in (0, 0.5, 0.6, 1.7):
        await ask(duet, "poems", temperature=temperature)
    await ask(duet, "poems")

    bands = {
        band: await duet.metric("duet_drafted_tokens_total", temperature=band) for band in ("0", "0.5", "1", "above")
    }
    assert bands == {"0": 200, "0.5": 200, "1": 400, "above": 200}
    assert await duet.metric("duet_accepted_tokens_total", temperature="1") == 20


def test_what_was_long_ago_fades():
    acceptance = Acceptance(explore=0)
    for _ in range(100):
        acceptance.add("a", Drafted(200, 0))
    assert acceptance.of("a") == 0
    for _ in range(30):
        acceptance.add("a", Drafted(200, 200))
    assert acceptance.of("a") > 0.9


def test_a_few_tokens_say_nothing():
    acceptance = Acceptance(explore=0)
    acceptance.add("a", Drafted(99, 0))
    assert acceptance.of("a") == 1
    acceptance.add("a", Drafted(1, 0))
    assert acceptance.of("a") == 0


def test_tasks_are_forgotten_when_there_are_too_many():
    acceptance = Acceptance(explore=0)
    acceptance.add("first", Drafted(200, 0))
    for number in range(10_000):
        acceptance.add(f"task {number}", Drafted(200, 0))
    assert acceptance.of("first") == 1
    assert acceptance.of("task 9999") == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"metrics":{"speculative_decoding":{"num_draft_tokens":8,"num_accepted_draft_tokens":3}}}', Drafted(8, 3)),
        (b'data: {"metrics":{"speculative_decoding":{"num_draft_tokens":0,"num_accepted_draft_tokens":0}}}', (0, 0)),
        (b'{"metrics":{"speculative_decoding":{"num_draft_tokens":3,"num_accepted_draft_tokens":8}}}', None),
        (b'{"metrics":{"speculative_decoding":{"num_draft_tokens":-1,"num_accepted_draft_tokens":-2}}}', None),
        (b'{"metrics":{"speculative_decoding":null}}', None),
        (b'{"metrics":{"speculative_decoding":{"num_draft_tokens":8', None),
        (b'{"text":"\\"speculative_decoding\\":{}"}', None),
        (b"", None),
    ],
)
def test_only_what_an_engine_tells_counts(text: bytes, found: Drafted | None):
    assert drafted_of(text) == found


def test_the_same_system_prompt_of_the_same_client_and_model_is_one_task():
    def of(client: str | None = None, **document: object) -> str:
        return task_of(parse(json.dumps(document).encode(), Endpoint.CHAT), [], b"x-duet-task", client)

    chat = {"model": "m", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "1"}]}
    other = {"model": "m", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "2"}]}
    assert of(**chat) == of(**other)
    assert len({of(**chat), of("me", **chat), of(**chat | {"model": "n"}), of(**chat | {"messages": []})}) == 4
