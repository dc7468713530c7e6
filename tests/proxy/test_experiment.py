"""Two arms compared on live traffic: what is counted, what ends an experiment, and what survives."""

import asyncio
import json
import os
from dataclasses import replace

import httpx
import psutil

from proxy.config import ProxyConfig
from proxy.settings import Breaker, ClientKey, Settings
from proxy.split import Experiment, Guards, Split
from proxy.topology import Topology
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import Duet, eventually, topology_of
from tests.proxy.program import Program, running

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
STREAM = TEXT | {"stream": True, "stream_options": {"include_usage": True}}
HALVES = Split("halves", {"main": 50, "int8": 50}, salt="s", experiment=Experiment("main", "int8", ttft=60, tpot=60))
NOTHING = {"split": None, "ended": None, "problem": "", "arms": {}, "metrics": [], "verdict": None, "reasons": []}
FAILS = (500, b'{"error":{"message":"scripted","type":"Scripted","param":null,"code":500}}')
QUICK = Settings(breaker=Breaker(pause=0.01, longest_pause=0.01))


def two_pools(**slow: float) -> list[FakeEngine]:
    return [FakeEngine("aggregated"), FakeEngine("aggregated", pool="int8", **slow)]


async def begin(start, split: Split = HALVES, engines: list[FakeEngine] | None = None) -> Duet:
    """A proxy whose split is in force."""
    duet = await start(engines=two_pools() if engines is None else engines, follow=True, settings=QUICK)
    await duet.reconfigure(lambda config: replace(config, split=split))
    await eventually(lambda: id_in_force(duet), split.id)
    return duet


async def id_in_force(duet: Duet) -> str | None:
    told = await experiment(duet)
    return told["split"] and told["split"]["id"]


async def experiment(duet: Duet | Program) -> dict:
    answer = await duet.client.get("/experiment")
    assert answer.status_code == 200
    return answer.json()


async def ask(duet: Duet | Program, session: int, body: dict = TEXT) -> httpx.Response:
    return await duet.client.post("/v1/completions", json=body, headers={"x-session-id": f"{session}"})


async def test_requests_are_counted_by_arm_and_are_compared(start):
    duet = await begin(start)
    told = [(await ask(duet, session, STREAM)).headers["x-duet-arm"] for session in range(30) for _ in range(2)]
    seen = await experiment(duet)
    for arm in ("main", "int8"):
        counted = seen["arms"][arm]
        assert counted["requests"] == counted["good"] == told.count(arm)
        assert (counted["failed"], counted["buckets"]) == (0, told.count(arm) / 2)
        assert await duet.metric("duet_arm_requests_total", arm=arm, outcome="ok") == told.count(arm)
        assert await duet.metric("duet_arm_ttft_seconds_count", arm=arm) == told.count(arm)
        assert await duet.metric("duet_arm_time_per_output_token_seconds_count", arm=arm) == told.count(arm)
        assert await duet.metric("duet_arm_share", arm=arm) == 0.5
    assert await duet.metric("duet_experiment_ended") == 0
    assert [metric["metric"] for metric in seen["metrics"]] == ["goodput", "errors", "ttft", "tpot"]
    assert seen["metrics"][2]["requests"] == [told.count("main"), told.count("int8")]
    assert seen["verdict"] == "not enough data"
    assert any("of the 200 requests that are the least" in reason for reason in seen["reasons"])


async def test_without_a_split_there_is_nothing_to_tell(start):
    duet = await start(engines=two_pools())
    await ask(duet, 1)
    assert await experiment(duet) == NOTHING
    assert await duet.metric("duet_arm_share") == 0


async def test_enough_requests_give_a_verdict(start):
    quick = Experiment("main", "int8", minimum_requests=10, minimum_buckets=10, guards=Guards(errors=0.9))
    engines = two_pools()
    duet = await begin(start, replace(HALVES, experiment=quick), engines)
    engines[1].faults.extend(Fault() if n % 3 else Fault(status=500) for n in range(200))
    for first in range(0, 240, 20):
        await asyncio.gather(*(ask(duet, first + n) for n in range(20)))
    seen = await experiment(duet)
    assert (seen["verdict"], seen["ended"]) == ("worse", None)
    goodput, errors = seen["metrics"][:2]
    assert goodput["verdict"] == errors["verdict"] == "worse"
    assert goodput["low"] <= goodput["effect"] <= goodput["high"] < 0 < errors["low"]


async def test_an_arm_that_fails_is_ended_by_its_guard_and_all_go_to_the_other(start):
    engines = two_pools()
    engines[1].instead["/v1/completions"] = FAILS
    duet = await begin(start, engines=engines)
    failed, session = 0, 0
    while (await experiment(duet))["ended"] is None:
        failed += (await ask(duet, session)).status_code == 500
        session += 1
        assert session < 200
    seen = await experiment(duet)
    assert failed < 40
    assert seen["ended"]["guard"] == "errors"
    assert seen["verdict"] == "worse"
    assert "the guard of errors has ended it: 20 of the last 20 requests of int8 failed" in seen["reasons"][0]
    for again in range(20):
        answer = await ask(duet, again)
        assert (answer.status_code, answer.headers["x-duet-pool"]) == (200, "main")
        assert "x-duet-arm" not in answer.headers
    assert await duet.metric("duet_experiment_ended") == 1
    assert await duet.metric("duet_arm_share", arm="main") == 1
    kept = json.loads((duet.file.parent / "experiment/halves/ended.json").read_text())
    assert kept == seen["ended"]


async def test_an_arm_of_which_a_part_fails_is_ended_when_that_is_sure(start):
    engines = two_pools()
    duet = await begin(start, engines=engines)
    engines[1].faults.extend(Fault() if n % 3 else Fault(status=500) for n in range(300))
    session = 0
    while (await experiment(duet))["ended"] is None:
        await ask(duet, session)
        session += 1
        assert session < 300
    assert "surely more than 2.0% of all requests apart" in (await experiment(duet))["ended"]["reason"]


async def test_a_single_client_whose_requests_all_fail_is_seen_too(start):
    engines = two_pools()
    engines[1].instead["/v1/completions"] = FAILS
    duet = await begin(start, replace(HALVES, shares={"main": 0, "int8": 100}), engines)
    statuses = []
    while (await experiment(duet))["ended"] is None:
        statuses.append((await ask(duet, 1)).status_code)
    assert statuses == [500] * 20
    assert (await ask(duet, 1)).status_code == 200
    assert "20 of the last 20 requests of int8 failed" in (await experiment(duet))["ended"]["reason"]


async def test_an_arm_that_is_slow_is_ended_by_its_guard(start):
    engines = two_pools(pace=0.2)
    duet = await begin(start, engines=engines)
    for round in range(20):
        await asyncio.gather(*(ask(duet, 40 * round + n, STREAM | {"max_tokens": 1}) for n in range(40)))
        if (await experiment(duet))["ended"] is not None:
            break
    ended = (await experiment(duet))["ended"]
    assert ended["guard"] == "ttft"
    assert "int8's is surely more than 1.5 times main's" in ended["reason"]


async def test_what_an_arm_could_not_serve_or_refused_is_left_out_and_counted(start):
    engines = two_pools()
    duet = await begin(start, replace(HALVES, shares={"main": 0, "int8": 100}), engines)
    engines[1].faults.append(Fault(status=400))
    assert (await ask(duet, 1)).status_code == 400
    await duet.reconfigure(lambda config: replace(config, draining=("aggregated-int8-0",)))
    answer = await ask(duet, 2)
    assert (answer.headers["x-duet-arm"], answer.headers["x-duet-pool"]) == ("int8", "main")
    seen = await experiment(duet)
    assert seen["arms"]["int8"]["requests"] == 0
    assert seen["arms"]["int8"]["excluded"] == {"rejected": 1, "fell_back": 1}
    assert await duet.metric("duet_arm_requests_total") == 1
    assert any("1 requests of int8 went to another pool" in reason for reason in seen["reasons"])


async def test_an_arm_of_which_everything_falls_back_is_ended(start):
    duet = await begin(start, replace(HALVES, shares={"main": 0, "int8": 100}))
    await duet.reconfigure(lambda config: replace(config, draining=("aggregated-int8-0",)))
    for session in range(20):
        assert (await ask(duet, session)).status_code == 200
    ended = (await experiment(duet))["ended"]
    assert ended["reason"].startswith("20 of the last 20 requests of int8 failed")


async def test_another_experiment_begins_anew_and_the_last_ones_sums_are_kept(start):
    duet = await begin(start)
    for session in range(5):
        await ask(duet, session)
    await duet.reconfigure(lambda config: replace(config, split=replace(HALVES, id="second")))
    await eventually(lambda: id_in_force(duet), "second")
    assert sum(arm["requests"] for arm in (await experiment(duet))["arms"].values()) == 0
    await duet.reconfigure(lambda config: replace(config, split=HALVES))
    await eventually(lambda: id_in_force(duet), "halves")
    assert sum(arm["requests"] for arm in (await experiment(duet))["arms"].values()) == 5


async def test_faulty_files_are_told_and_what_this_process_knows_is_shown(start):
    duet = await begin(start)
    await ask(duet, 1)
    folder = duet.file.parent / "experiment/halves"
    assert (await experiment(duet))["problem"] == ""
    (folder / "1-1.json").write_text('{"main": 1}')
    seen = await experiment(duet)
    assert "1 validation error" in seen["problem"]
    assert sum(arm["requests"] for arm in seen["arms"].values()) == 1


CLIENT, OPERATOR = (ClientKey(name, sha) for name, sha in (("c", "0" * 64), ("o", "1" * 64)))


async def test_only_who_may_look_sees_it(start):
    duet = await start(engines=two_pools(), settings=Settings(client_keys=(CLIENT,), admin_keys=(OPERATOR,)))
    assert (await duet.client.get("/experiment")).status_code == 401


def config_of(engines: list[FakeEngine], **settings: object) -> ProxyConfig:
    topology: Topology = topology_of(engines)
    return ProxyConfig(topology, replace(QUICK, **settings), split=HALVES)


async def counted(program: Program) -> int:
    """By whichever worker answers, over a new connection."""
    async with httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60) as client:
        return sum(arm["requests"] for arm in (await client.get("/experiment")).json()["arms"].values())


async def post(program: Program, session: int) -> httpx.Response:
    async with httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60) as client:
        return await client.post("/v1/completions", json=TEXT, headers={"x-session-id": f"{session}"})


async def test_counts_are_those_of_all_workers_and_survive_their_ends_and_the_proxys(tmp_path):
    engines = two_pools()
    async with engines[0], engines[1]:
        config = config_of(engines, workers=2)
        async with running(config, tmp_path) as program:
            await program.said("listening on")
            arms = {session: set() for session in range(10)}
            for session in [*arms] * 3:
                arms[session].add((await post(program, session)).headers["x-duet-arm"])
            assert all(len(each) == 1 for each in arms.values())  # whichever worker decides
            await eventually(lambda: counted(program), 30)
            for worker in psutil.Process(program.pid).children():
                worker.kill()
            for _ in range(2):
                await program.said("listening on")
            await post(program, 1)
            await eventually(lambda: counted(program), 31)
            program.signal(15)
            assert await program.end() == 0
        async with running(config_of(engines), tmp_path) as program:
            assert await counted(program) == 31


async def test_an_experiment_that_was_ended_stays_ended_in_a_new_process(tmp_path):
    engines = two_pools()
    folder = tmp_path / "experiment/halves"
    folder.mkdir(parents=True)
    (folder / "ended.json").write_text('{"guard": "errors", "reason": "all fail", "at": 1.0}')
    async with engines[0], engines[1], running(config_of(engines), tmp_path) as program:
        told = {(await ask(program, session)).headers["x-duet-pool"] for session in range(20)}
        assert told == {"main"}
        assert (await experiment(program))["ended"]["reason"] == "all fail"


async def test_a_worker_obeys_what_another_process_has_ended(start):
    duet = await begin(start)
    folder = duet.file.parent / "experiment/halves"
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / "new"
    new.write_text('{"guard": "ttft", "reason": "slow", "at": 1.0}')
    os.replace(new, folder / "ended.json")
    await eventually(lambda: duet.metric("duet_experiment_ended"), 1)
    assert {(await ask(duet, session)).headers["x-duet-pool"] for session in range(20)} == {"main"}
