"""Which pool takes a request, and rules that cannot mean what they say."""

import json
from dataclasses import replace

import pytest
from pydantic import TypeAdapter, ValidationError

from proxy.completion import parse
from proxy.config import ConfigError, ProxyConfig, dump, load
from proxy.endpoint import Endpoint
from proxy.pools import Between, PoolFallback, PoolRule, PoolSettings, PromptTokens, When, rule_faults
from proxy.routing import Route, Router
from proxy.settings import Settings
from proxy.topology import Instance, Role, Topology

SHORT, LONG = {"prompt": "x" * 399}, {"prompt": "x" * 401}
UP_TO_100 = When(prompt_tokens=PromptTokens(max=100))


def pool_of(when: When, body: dict, headers: dict[str, str] | None = None, endpoint=Endpoint.COMPLETIONS) -> str:
    router = Router(PoolSettings((PoolRule("int8", when),)))
    raw = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    return router.route(parse(json.dumps(body).encode(), endpoint), raw).pool


@pytest.mark.parametrize(
    ("when", "body", "headers", "taken"),
    [
        (UP_TO_100, SHORT, {}, True),
        (UP_TO_100, LONG, {}, False),
        (UP_TO_100, {"prompt": list(range(100))}, {}, True),
        (UP_TO_100, {"prompt": list(range(101))}, {}, False),
        (When(prompt_tokens=PromptTokens(min=101)), LONG, {}, True),
        (When(prompt_tokens=PromptTokens(min=101)), SHORT, {}, False),
        (When(models=("fast", "cheap")), {"model": "cheap"}, {}, True),
        (When(models=("fast", "cheap")), {"model": "exact"}, {}, False),
        (When(models=("fast",)), {"model": ["fast"]}, {}, False),
        (When(models=("fast",)), {}, {}, False),
        (When(header={"X-Tier": "batch"}), {}, {"x-tier": "batch"}, True),
        (When(header={"X-Tier": "batch"}), {}, {"x-tier": "gold"}, False),
        (When(header={"x-a": "1", "x-b": "2"}), {}, {"x-a": "1"}, False),
        (When(tags=("batch", "eval")), {}, {"x-duet-tags": "night, batch"}, True),
        (When(tags=("batch",)), {}, {"x-duet-tags": "batches"}, False),
        (When(tags=("batch",)), {"metadata": {"tags": ["batch", 1]}}, {}, True),
        (When(tags=("batch",)), {"metadata": {"tags": "night,batch"}}, {}, True),
        (When(tags=("batch",)), {"metadata": {"tags": {"batch": True}}}, {}, False),
        (When(tags=("batch",)), {"metadata": "batch"}, {}, False),
        (When(temperature=Between(max=0.3)), {"temperature": 0}, {}, True),
        (When(temperature=Between(max=0.3)), {"temperature": 0.3}, {}, True),
        (When(temperature=Between(max=0.3)), {"temperature": 0.7}, {}, False),
        (When(temperature=Between(max=0.3)), {}, {}, False),
        (When(temperature=Between(min=1)), {}, {}, True),
        (When(temperature=Between(min=1)), {"temperature": "0"}, {}, True),
        (When(expected_acceptance=Between(min=0.5)), {}, {}, True),
        (When(models=("a",), tags=("b",)), {"model": "a"}, {"x-duet-tags": "b"}, True),
        (When(models=("a",), tags=("b",)), {"model": "a"}, {}, False),
        (When(), {}, {}, True),
    ],
)
def test_a_rule_takes_what_meets_all_its_conditions(when, body, headers, taken):
    assert (pool_of(when, body, headers) == "int8") is taken


def test_prompts_of_chats_are_counted_too():
    chat = {"messages": [{"role": "user", "content": "x" * 600}]}
    assert pool_of(UP_TO_100, chat, endpoint=Endpoint.CHAT) == ""


def test_the_first_rule_that_fits_decides_with_its_own_fallback():
    rules = (
        PoolRule("main", When(tags=("exact",)), PoolFallback.REFUSE),
        PoolRule("int8", When(models=("fast",))),
        PoolRule("int4"),
    )
    router = Router(PoolSettings(rules, tags_header="X-Tags"))

    def route(headers: dict[bytes, bytes], body: bytes = b'{"model": "fast"}') -> Route:
        return router.route(parse(body, Endpoint.COMPLETIONS), headers.items())

    assert route({b"x-tags": b"exact"}) == Route("", PoolFallback.REFUSE, by_rule=True)
    assert route({b"x-duet-tags": b"exact"}) == Route("int8", PoolFallback.OTHER, by_rule=True)
    assert route({}, b"{}") == Route("int4", PoolFallback.OTHER, by_rule=True)


def faults(*rules: PoolRule) -> list[str]:
    return [f"{'.'.join(map(str, where))}: {fault}" for where, fault in rule_faults(rules, ("int8",))]


def test_a_rule_for_a_pool_that_is_not_there_is_a_fault():
    assert faults(PoolRule("int9")) == ["0.pool: there is no pool int9; there are: main, int8"]


def test_only_the_last_rule_may_be_without_conditions():
    (fault,) = faults(PoolRule("int8"), PoolRule("main", UP_TO_100))
    assert fault.startswith("0.when: without a condition it takes all requests")
    assert not faults(PoolRule("main", UP_TO_100), PoolRule("int8"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (UP_TO_100, UP_TO_100),
        (UP_TO_100, When(prompt_tokens=PromptTokens(min=10, max=50), tags=("a",))),
        (When(prompt_tokens=PromptTokens(min=10)), When(prompt_tokens=PromptTokens(min=11))),
        (When(models=("a", "b")), When(models=("b",))),
        (When(tags=("a", "b")), When(tags=("a",), models=("m",))),
        (When(header={"X-A": "1"}), When(header={"x-a": "1", "x-b": "2"})),
    ],
)
def test_a_rule_whose_requests_an_earlier_one_takes_is_a_fault(earlier, later):
    (fault,) = faults(PoolRule("int8", earlier), PoolRule("main", later))
    assert fault.startswith("1: rule 0 takes all requests that it would take")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (UP_TO_100, When(prompt_tokens=PromptTokens(max=101))),
        (UP_TO_100, When(tags=("a",))),
        (When(prompt_tokens=PromptTokens(min=10)), UP_TO_100),
        (When(models=("a",)), When(models=("a", "b"))),
        (When(tags=("a",), models=("m",)), When(tags=("a",))),
        (When(header={"x-a": "1"}), When(header={"x-a": "2"})),
    ],
)
def test_rules_that_overlap_are_none(earlier, later):
    assert not faults(PoolRule("int8", earlier), PoolRule("main", later))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"rules": [{"pool": "a", "when": {"prompt_tokens": {}}}]}, "give min, max or both"),
        ({"rules": [{"pool": "a", "when": {"prompt_tokens": {"min": 9, "max": 8}}}]}, "min is above max"),
        ({"rules": [{"pool": "a", "when": {"prompt_tokens": {"max": 0}}}]}, "greater than or equal to 1"),
        ({"rules": [{"pool": "a", "when": {"model": ["b"]}}]}, "Unexpected keyword"),
        ({"rules": [{"pool": "a", "when": {"header": {"x y": "b"}}}]}, "match pattern"),
        ({"rules": [], "fallback": "maybe"}, "'other' or 'refuse'"),
    ],
)
def test_a_condition_that_says_nothing_or_too_much_is_refused(written, said):
    with pytest.raises(ValidationError, match=said):
        TypeAdapter(PoolSettings).validate_json(json.dumps(written))


CONFIG = ProxyConfig(
    Topology((Instance("a", Role.AGGREGATED, "http://127.0.0.1:1"), Instance("b", Role.AGGREGATED, "http://x", "int8")))
)


def test_a_configuration_with_rules_comes_back_as_it_was(tmp_path):
    file = tmp_path / "proxy.json"
    rules = (PoolRule("int8", replace(UP_TO_100, header={"x-a": "1"}), PoolFallback.REFUSE), PoolRule("main"))
    config = replace(CONFIG, settings=Settings(pools=PoolSettings(rules)))
    file.write_text(dump(config))
    assert load(file) == config


@pytest.mark.parametrize(
    ("rule", "pool", "said"),
    [
        ("int4", "int8", r"settings\.pools\.rules\.0\.pool: there is no pool int4; there are: main, int8"),
        ("main", "main", "a pool is 1 to 24 of a-z 0-9 -, empty for the main one, not 'main'"),
        ("main", "In T", "not 'In T'"),
    ],
)
def test_a_configuration_whose_pools_cannot_be_is_refused(tmp_path, rule, pool, said):
    file = tmp_path / "proxy.json"
    first, second = CONFIG.topology.instances
    topology = Topology((first, replace(second, pool=pool)))
    file.write_text(dump(ProxyConfig(topology, Settings(pools=PoolSettings((PoolRule(rule),))))))
    with pytest.raises(ConfigError, match=said):
        load(file)
