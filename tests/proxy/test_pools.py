"""Several pools of engines behind one proxy: who serves what, and what happens when a pool is down."""

from dataclasses import replace

import httpx
import pytest

from proxy.config import ProxyConfig
from proxy.pools import PoolFallback, PoolRule, PoolSettings, PromptTokens, When
from proxy.settings import Breaker, Canary, ConditionalPD, FailurePolicy, Policy, Selection, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import Duet, eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
BATCH = {"x-duet-tags": "batch"}
RULES = (
    PoolRule("main", When(header={"x-tier": "gold"})),
    PoolRule("int8", When(tags=("batch",))),
    PoolRule("int8", When(prompt_tokens=PromptTokens(min=1000))),
)
NO_PAUSE = Breaker(pause=0.01, longest_pause=0.01)


def settings(*rules: PoolRule, fallback: PoolFallback = PoolFallback.OTHER) -> Settings:
    return Settings(pools=PoolSettings(rules or RULES, fallback), breaker=NO_PAUSE)


def two_pairs() -> list[FakeEngine]:
    """Of the main pool and of int8."""
    return [FakeEngine(role, pool=pool) for pool in ("", "int8") for role in ("prefill", "decode")]


async def ask(duet: Duet, headers: dict[str, str] | None = None, **more: object) -> httpx.Response:
    return await duet.client.post("/v1/completions", json=TEXT | more, headers=headers)


async def test_each_request_goes_through_the_pair_of_the_pool_of_its_rule(start):
    duet = await start(engines=two_pairs(), settings=settings())
    for headers, more, pool in (
        ({}, {}, "main"),
        (BATCH, {}, "int8"),
        (BATCH | {"x-tier": "gold"}, {}, "main"),
        ({}, {"prompt": "x" * 4000}, "int8"),
        ({}, {"metadata": {"tags": ["batch"]}}, "int8"),
    ):
        answer = await ask(duet, headers, **more)
        name = "-int8-0" if pool == "int8" else "-0"
        told = [answer.headers[f"x-duet-{each}"] for each in ("path", "pool", "prefill", "decode")]
        assert told == ["pd", pool, f"prefill{name}", f"decode{name}"]
        assert "x-duet-pool-fallback" not in answer.headers
    assert [len(engine.seen) for engine in duet.engines] == [2, 2, 3, 3]
    assert all(seen.header("x-duet-tags") is None for engine in duet.engines for seen in engine.seen)


async def test_pairs_are_of_one_pool_and_all_of_them_are_proven(start):
    duet = await start(engines=two_pairs(), settings=settings(), canary=Canary(timeout=5))
    pairs = await duet.pairs()
    assert {key: row["standing"] for key, row in pairs.items()} == {
        ("prefill-0", "decode-0"): "proven",
        ("prefill-int8-0", "decode-int8-0"): "proven",
    }
    assert (await duet.ready())["pools"] == {
        "main": {"pd": True, "aggregated": True},
        "int8": {"pd": True, "aggregated": True},
    }
    assert [row["pool"] for row in (await duet.ready())["instances"]] == ["main", "main", "int8", "int8"]


async def test_a_pool_of_other_weights_is_no_disagreement_but_a_mixed_pair_is(start):
    engines = two_pairs()
    for engine in engines[2:]:
        engine.root, engine.cache_config = "/models/int8", {"block_size": "32"}
    duet = await start(engines=engines, settings=settings(), canary=Canary(timeout=5))
    assert {row["standing"] for row in (await duet.pairs()).values()} == {"proven"}
    mixed = [FakeEngine("prefill"), FakeEngine("decode")]
    mixed[1].root = "/models/int8"
    other = await start(engines=mixed)
    assert await other.standing() == "refused"


async def test_streams_are_counted_by_pool(start):
    duet = await start(engines=two_pairs(), settings=settings())
    for headers in ({}, BATCH, BATCH):
        answer = await ask(duet, headers, stream=True, stream_options={"include_usage": True})
        assert answer.text.endswith("data: [DONE]\n\n")
    await duet.idle()
    assert await duet.metric("duet_pool_requests_total", pool="int8", outcome="ok") == 2
    assert await duet.metric("duet_pool_requests_total", pool="main", outcome="ok") == 1
    assert await duet.metric("duet_pool_ttft_seconds_count", pool="int8") == 2
    assert await duet.metric("duet_pool_time_per_output_token_seconds_count", pool="main") == 1
    assert await duet.metric("duet_pool_fallbacks_total") == 0
    assert await duet.metric("duet_instance_pool", engine="decode-int8-0", pool="int8") == 1


async def test_with_one_pool_nothing_speaks_of_pools(start):
    duet = await start()
    assert "x-duet-pool" not in (await ask(duet)).headers
    assert "pools" not in await duet.ready()
    text = (await duet.client.get("/metrics")).text
    assert not [line for line in text.splitlines() if line.startswith(("duet_pool", "duet_instance_pool"))]


async def test_when_nobody_of_a_pool_serves_another_does_and_that_is_told(start):
    engines = two_pairs()
    engines[3].health = 503
    duet = await start(engines=engines, settings=settings())
    answer = await ask(duet, BATCH)
    assert answer.status_code == 200
    told = [answer.headers[f"x-duet-{each}"] for each in ("path", "pool", "pool-fallback", "decode")]
    assert told == ["pd", "main", "int8", "decode-0"]
    assert await duet.metric("duet_pool_fallbacks_total", pool="int8") == 1
    assert await duet.metric("duet_pool_requests_total", pool="main", outcome="ok") == 1
    assert (await duet.ready())["pools"]["int8"] == {"pd": False, "aggregated": False}


async def test_an_instance_that_has_just_gone_is_found_out_on_the_way(start):
    duet = await start(engines=two_pairs(), settings=settings())
    await duet.engines[3].stop()
    answer = await ask(duet, BATCH)
    assert (answer.status_code, answer.headers["x-duet-pool"], answer.headers["x-duet-path"]) == (200, "main", "pd")
    assert answer.headers["x-duet-pool-fallback"] == "int8"
    assert "x-duet-bypass" not in answer.headers


async def test_a_client_that_wants_no_other_way_is_told_of_the_failure(start):
    duet = await start(engines=two_pairs(), settings=settings(), policy=FailurePolicy.FAIL)
    await duet.engines[3].stop()
    assert (await ask(duet, BATCH)).status_code == 502
    assert len(duet.engines[1].seen) == 0


async def test_an_error_of_an_engine_is_no_reason_for_another_pool(start):
    duet = await start(engines=two_pairs(), settings=settings())
    duet.engines[2].faults.append(Fault(status=500))
    duet.engines[3].faults.append(Fault(status=500))
    assert (await ask(duet, BATCH)).status_code == 500
    assert not duet.engines[0].seen
    assert not duet.engines[1].seen


async def test_without_prefill_a_pool_serves_by_decode_alone_before_another_is_asked(start):
    engines = two_pairs()
    engines[2].health = 503
    duet = await start(engines=engines, settings=settings())
    answer = await ask(duet, BATCH)
    assert (answer.headers["x-duet-decode"], answer.headers["x-duet-bypass"]) == ("decode-int8-0", "no_prefill")
    overview = (await duet.client.get("/overview")).json()
    assert overview["reasons"][0].startswith("Requests of the pool int8 bypass prefill")


async def test_other_pairs_of_the_same_pool_are_tried_first(start):
    engines = [*two_pairs(), FakeEngine("prefill", pool="int8")]
    duet = await start(engines=engines, settings=settings(), policy=FailurePolicy.RETRY)
    engines[2].faults.append(Fault(status=500))
    engines[4].faults.append(Fault(status=500))
    answer = await ask(duet, BATCH)
    assert answer.status_code == 500
    assert [len(engine.seen) for engine in engines] == [0, 0, 1, 0, 1]
    assert (await ask(duet, BATCH)).headers["x-duet-pool"] == "int8"


@pytest.mark.parametrize("of_the_rule", [True, False])
async def test_a_pool_without_fallback_refuses_with_its_name(start, of_the_rule):
    engines = two_pairs()
    engines[3].health = 503
    rule = PoolRule("int8", When(tags=("batch",)), PoolFallback.REFUSE if of_the_rule else None)
    fallback = PoolFallback.OTHER if of_the_rule else PoolFallback.REFUSE
    duet = await start(engines=engines, settings=settings(rule, fallback=fallback))
    answer = await ask(duet, BATCH)
    assert answer.status_code == 503
    assert "No instance of the pool int8 serves now" in answer.json()["error"]["message"]
    assert (answer.headers["retry-after"], answer.headers["x-duet-pool"]) == ("2", "int8")
    assert (await ask(duet)).status_code == 200
    assert await duet.metric("duet_pool_requests_total", pool="int8", outcome="failed") == 1
    assert await duet.metric("duet_pool_fallbacks_total") == 0
    assert (await duet.ready())["ready"] is True


async def test_when_no_pool_serves_it_is_refused(start):
    engines = two_pairs()
    engines[1].health = engines[3].health = 503
    duet = await start(engines=engines, settings=settings())
    assert (await ask(duet, BATCH)).status_code == 503
    assert (await duet.client.get("/ready")).status_code == 503


async def test_a_pool_may_do_without_prefill(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine(pool="int8")]
    duet = await start(engines=engines, settings=settings(), policy=FailurePolicy.FAIL)
    answer = await ask(duet, BATCH)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "aggregated")
    assert "x-duet-bypass" not in answer.headers
    assert (await ask(duet)).headers["x-duet-path"] == "pd"
    assert (await duet.client.get("/overview")).json()["health"] == "ready"


async def test_thresholds_and_sessions_hold_within_a_pool(start):
    engines = [*two_pairs(), FakeEngine("decode", pool="int8")]
    chosen = replace(
        settings(),
        pd=ConditionalPD(shorter_than=50),
        selection=Selection(decode=Policy.SESSION_AFFINITY),
    )
    duet = await start(engines=engines, settings=chosen)
    for session in range(8):
        headers = BATCH | {"x-session-id": str(session)}
        answers = [await ask(duet, headers, prompt="x" * size) for size in (40, 400, 40)]
        paths = [answer.headers["x-duet-path"] for answer in answers]
        assert paths == ["aggregated", "pd", "aggregated"]
        assert len({answer.headers["x-duet-decode"] for answer in answers}) == 1
        assert {answer.headers["x-duet-pool"] for answer in answers} == {"int8"}
    assert not engines[1].seen


async def test_other_routes_ask_the_main_pool_first(start):
    engines = two_pairs()
    duet = await start(engines=engines, settings=settings())
    for _ in range(3):
        answer = await duet.client.post("/echo", content=b"x")
        assert answer.headers["x-duet-decode"] == "decode-0"


async def test_pools_come_and_go_with_the_configuration(start):
    engines = [*two_pairs(), FakeEngine("decode", pool="int8")]
    duet = await start(engines=engines, settings=settings(), follow=True)

    def drained(config: ProxyConfig) -> ProxyConfig:
        return replace(config, draining=("decode-int8-0", "decode-int8-1"))

    await duet.reconfigure(drained)
    assert (await ask(duet, BATCH)).headers["x-duet-pool-fallback"] == "int8"
    await duet.reconfigure(lambda config: replace(config, draining=()))

    async def pool() -> str:
        return (await ask(duet, BATCH)).headers["x-duet-pool"]

    await eventually(pool, "int8")


async def test_the_log_says_which_pool(start, caplog):
    caplog.set_level("INFO")
    engines = two_pairs()
    engines[3].health = 503
    duet = await start(engines=engines, settings=settings())
    await ask(duet)
    await ask(duet, BATCH)
    lines = [record.getMessage() for record in caplog.records if "outcome=" in record.getMessage()]
    assert [line.partition(" pool=")[2] for line in lines] == ["main fell_back_from=-", "main fell_back_from=int8"]
