"""Requests divided among pools by shares: who goes where, who stays, and changes while the proxy runs."""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

import httpx
import pytest

from proxy.arms import Arms, bucket_of
from proxy.config import ConfigError, Discovery, ProxyConfig, dump, load
from proxy.pools import PoolFallback, PoolRule, PoolSettings, When
from proxy.settings import ClientKey, Settings
from proxy.split import BUCKETS, Experiment, Split, SplitBy
from proxy.topology import Instance, Role, Topology
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import Duet, eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
HALVES = Split("halves", {"main": 50, "int8": 50}, salt="s")
EVERY = range(BUCKETS)


def arms(shares: dict[str, float]) -> list[str]:
    """Of all buckets."""
    of = Arms(Split("x", shares))
    return [of.of(bucket) for bucket in EVERY]


def test_each_arm_has_its_share_of_the_buckets():
    assert Counter(arms({"main": 62.5, "int8": 27.4, "int4": 10.1})) == {"main": 625, "int8": 274, "int4": 101}
    assert Counter(arms({"main": 0, "int8": 100})) == {"int8": 1000}
    assert Counter(arms({"main": 33.3, "a": 33.3, "b": 33.4}))["b"] == 334


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        ({"main": 90, "int8": 10}, {"main": 80, "int8": 20}, "int8"),
        ({"main": 80, "int8": 20}, {"main": 95, "int8": 5}, "main"),
        ({"a": 10, "b": 90}, {"a": 30, "b": 70}, "a"),
        ({"main": 80, "a": 10, "b": 10}, {"main": 60, "a": 30, "b": 10}, "a"),
        ({"main": 80, "a": 10, "b": 10}, {"main": 60, "a": 10, "b": 30}, "b"),
    ],
)
def test_a_share_that_grows_takes_buckets_and_moves_no_others(before, after, grown):
    moved = {new for old, new in zip(arms(before), arms(after), strict=True) if old != new}
    assert moved == {grown}


def test_buckets_are_filled_evenly_and_another_salt_makes_others():
    filled = Counter(bucket_of("s", f"session {n}") for n in range(20_000))
    assert len(filled) == BUCKETS
    assert max(filled.values()) < 50
    same = sum(bucket_of("s", f"{n}") == bucket_of("t", f"{n}") for n in range(5000))
    assert same < 30


def two_pools() -> list[FakeEngine]:
    return [FakeEngine("aggregated"), FakeEngine("aggregated", pool="int8")]


async def split(duet: Duet, new: Split | None) -> None:
    """Change it while the proxy runs; returns when it is in force."""
    told = [] if new is None else [arm for arm, share in new.shares.items() if share == 100]
    await duet.reconfigure(lambda config: replace(config, split=new))

    async def in_force() -> bool:
        arm = (await ask(duet)).headers.get("x-duet-arm")
        return arm in told if told else (arm is None) is (new is None)

    await eventually(in_force, True)


async def ask(duet: Duet, headers: dict[str, str] | None = None, **more: object) -> httpx.Response:
    return await duet.client.post("/v1/completions", json=TEXT | more, headers=headers)


async def test_a_split_is_followed_while_the_proxy_runs_and_the_answer_tells_the_arm(start):
    duet = await start(engines=two_pools(), follow=True)
    assert "x-duet-arm" not in (await ask(duet)).headers
    for arm, other in (("int8", "main"), ("main", "int8")):
        await split(duet, Split("steered", {arm: 100, other: 0}))
        answer = await ask(duet)
        assert (answer.headers["x-duet-arm"], answer.headers["x-duet-pool"]) == (arm, arm)
    await split(duet, None)
    assert (await ask(duet)).headers["x-duet-pool"] == "main"


async def test_a_session_stays_with_its_arm_whether_header_or_body_name_it(start):
    duet = await start(engines=two_pools(), follow=True)
    await split(duet, HALVES)
    seen = set()
    for number in range(12):
        name = f"talk-{number}"
        expected = Arms(HALVES).of(bucket_of("s", f"session {name}"))
        told = [
            await ask(duet, {"x-session-id": name}),
            await ask(duet, session_id=name),
            await ask(duet, prompt_cache_key=name, prompt=f"{number}"),
        ]
        assert {answer.headers["x-duet-arm"] for answer in told} == {expected}
        seen.add(expected)
    assert seen == {"main", "int8"}


async def test_requests_of_nobody_are_divided_one_by_one(start):
    duet = await start(engines=two_pools(), follow=True)
    await split(duet, replace(HALVES, by=SplitBy.REQUEST))
    told = Counter([(await ask(duet, {"x-session-id": "same"})).headers["x-duet-arm"] for _ in range(60)])
    assert 10 < told["main"] < 50


KEYS = ("sk-a", "sk-b", "sk-c", "sk-d", "sk-e", "sk-f")


@pytest.mark.parametrize("by", [SplitBy.CLIENT, SplitBy.SESSION])
async def test_a_client_without_a_session_stays_with_its_arm(start, by):
    keys = tuple(ClientKey(f"team-{key[-1]}", sha256(key.encode()).hexdigest()) for key in KEYS)
    duet = await start(engines=two_pools(), follow=True, settings=Settings(client_keys=keys))
    duet.client.headers["authorization"] = "Bearer sk-a"
    await split(duet, replace(HALVES, by=by))
    for key in KEYS:
        expected = Arms(HALVES).of(bucket_of("s", f"client team-{key[-1]}"))
        told = {(await ask(duet, {"authorization": f"Bearer {key}"})).headers["x-duet-arm"] for _ in range(3)}
        assert told == {expected}


async def test_what_a_rule_takes_is_not_divided(start):
    rules = PoolSettings((PoolRule("main", When(tags=("exact",))),), PoolFallback.REFUSE)
    duet = await start(engines=two_pools(), follow=True, settings=Settings(pools=rules))
    await split(duet, Split("all", {"int8": 100, "main": 0}))
    by_rule = await ask(duet, {"x-duet-tags": "exact"})
    assert by_rule.headers["x-duet-pool"] == "main"
    assert "x-duet-arm" not in by_rule.headers
    assert (await ask(duet)).headers["x-duet-pool"] == "int8"


async def test_an_arm_whose_pool_cannot_serve_falls_back_and_says_both(start):
    engines = two_pools()
    duet = await start(engines=engines, follow=True)
    await split(duet, Split("all", {"int8": 100, "main": 0}))
    await duet.reconfigure(lambda config: replace(config, draining=("aggregated-int8-0",)))
    answer = await ask(duet)
    told = [answer.headers[f"x-duet-{each}"] for each in ("arm", "pool", "pool-fallback")]
    assert told == ["int8", "main", "int8"]


CONFIG = ProxyConfig(
    Topology((Instance("a", Role.AGGREGATED, "http://x"), Instance("b", Role.AGGREGATED, "http://y", "int8")))
)


def test_a_configuration_with_an_experiment_comes_back_as_it_was(tmp_path):
    file = tmp_path / "proxy.json"
    config = replace(CONFIG, split=replace(HALVES, experiment=Experiment("main", "int8", ttft=0.5)))
    file.write_text(dump(config))
    assert load(file) == config


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shares": {"main": 50, "int4": 50}}, "split.shares: there is no pool int4; there are: main, int8"),
        ({"shares": {"main": 50, "int8": 40}}, "split.shares: they are percent and come to 90, not to 100"),
        ({"shadow": "int4"}, "split.shadow: there is no pool int4"),
        ({"shadow": "int8"}, "split.shadow: int8 has a share of the requests itself"),
        ({"experiment": Experiment("main", "main")}, "split.experiment.b: a pool is not compared with itself"),
        ({"experiment": Experiment("other", "int8")}, "split.experiment.a: other is no arm of shares: main, int8"),
        ({"experiment": Experiment("main", "other")}, "split.experiment.b: other is neither an arm of shares nor"),
        ({"id": "../x"}, "split.id: String should match pattern"),
    ],
)
def test_a_split_that_cannot_be_is_refused(tmp_path, wrong, said):
    file = tmp_path / "proxy.json"
    file.write_text(dump(replace(CONFIG, split=replace(HALVES, **wrong))))
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert said in str(refused.value)


def test_a_split_in_a_cluster_is_refused(tmp_path):
    file = tmp_path / "proxy.json"
    file.write_text(dump(ProxyConfig(Topology(()), discovery=Discovery("app=x"), split=HALVES)))
    with pytest.raises(ConfigError, match="split: there are no pools in a cluster: remove it"):
        load(file)
