"""The split of an experiment, and why one cannot be."""

from dataclasses import replace

import pytest

from launcher.ab.request import AbRequest, faults, split_of
from proxy.config import Discovery, ProxyConfig
from proxy.pools import PoolRule, PoolSettings, When
from proxy.settings import Settings
from proxy.split import Experiment, Split, SplitBy
from proxy.topology import Instance, Role, Topology

TWO = ProxyConfig(
    Topology((Instance("a", Role.AGGREGATED, "http://x"), Instance("b", Role.AGGREGATED, "http://y", "int8")))
)


def made(request: AbRequest, **objectives: float) -> Split:
    return split_of(request, "ab-1", "salt", objectives)


def test_the_share_goes_to_b_and_objectives_are_the_profiles_unless_given():
    split = made(AbRequest("int8", share=20, tpot=0.1), ttft=0.5, tpot=0.2)
    assert split == Split(
        *("ab-1", {"main": 80.0, "int8": 20.0}, SplitBy.SESSION, "salt"),
        experiment=Experiment("main", "int8", ttft=0.5, tpot=0.1),
    )
    assert not list(faults(split, TWO))


def test_a_shadow_gets_copies_and_no_share():
    split = made(AbRequest("int8", share=30, shadow=True))
    assert (split.shares, split.shadow, split.shadow_percent) == ({"main": 100.0}, "int8", 30)
    assert not list(faults(split, TWO))


def with_rules(*rules: PoolRule) -> ProxyConfig:
    return replace(TWO, settings=Settings(pools=PoolSettings(rules)))


@pytest.mark.parametrize(
    ("request_", "config", "said"),
    [
        (AbRequest("int4"), TWO, "there is no pool int4; there are: main, int8"),
        (AbRequest("int8"), ProxyConfig(Topology(TWO.topology.instances[:1])), "has one pool only"),
        (AbRequest("int8"), ProxyConfig(Topology(()), discovery=Discovery("a=b")), "install one release for each arm"),
        (AbRequest("main"), TWO, "a pool is not compared with itself: name another one than main"),
        (AbRequest("int8", share=2), TWO, "give either arm a share of 3 at least"),
        (AbRequest("int8", share=98), TWO, "2 percent are fewer buckets than a verdict needs"),
        (AbRequest("int8", share=2, shadow=True), TWO, "2 percent are fewer buckets"),
        (AbRequest("int8", by=SplitBy.CLIENT), TWO, "give them keys (proxy.client_keys)"),
        (AbRequest("int8"), with_rules(PoolRule("int8")), "the last rule of proxy.pools sends all requests to int8"),
        (
            AbRequest("int8"),
            replace(TWO, split=Split("ab-0", {"main": 100}, experiment=Experiment("main", "int8"))),
            "an experiment runs: ab-0: end it with `launcher ab stop`",
        ),
        (
            AbRequest("int8"),
            replace(TWO, split=Split("spec", {"main": 100})),
            "divided already: spec: end what does it",
        ),
    ],
)
def test_what_cannot_be_is_told_with_the_fix(request_, config, said):
    assert said in "; ".join(faults(made(request_), config))


def test_rules_for_some_requests_leave_the_others_to_be_divided():
    assert not list(faults(made(AbRequest("int8")), with_rules(PoolRule("int8", When(tags=("batch",))))))
