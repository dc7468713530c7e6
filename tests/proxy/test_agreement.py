"""Which instances are alike enough to be paired, by what is known of them."""

import pytest

from proxy.agreement import Fact, Identity, contradiction, disagreement

NIXL = {Fact.CONNECTOR: "NixlConnector"}
STORE = {Fact.CONNECTOR: "NixlConnector + ExampleConnector"}


def between(prefill: dict[str, str], decode: dict[str, str]) -> str:
    return disagreement(Identity("prefill-0", prefill), Identity("decode-0", decode))


def test_the_fact_both_values_and_both_instances_are_named():
    assert between({"block size": "32"}, {"block size": "16"}) == (
        "block size differs: prefill-0 has 32, decode-0 has 16"
    )


def test_all_differences_are_named():
    told = between({"dtype": "float16", "model": "/a", "x": "1"}, {"x": "1", "model": "b", "dtype": "bfloat16"})
    assert told == (
        "dtype differs: prefill-0 has float16, decode-0 has bfloat16; model differs: prefill-0 has /a, decode-0 has b"
    )


@pytest.mark.parametrize("fact", [fact for fact in Fact if fact not in ("longest sequence", "tensor parallel size")])
def test_facts_have_to_be_equal(fact):
    facts = STORE | {fact: "1"}
    assert not between(facts, facts)
    assert between(facts, facts | {fact: "2 "})


def test_a_fact_without_a_name_of_its_own_has_to_be_equal_too():
    assert between({"option --hf-overrides": "{}"}, {"option --hf-overrides": "(not set)"})


def test_what_is_not_known_of_both_is_not_compared():
    assert not between({"weights": "1"}, {})
    assert not between({}, {"weights": "1"})


@pytest.mark.parametrize("fact", [Fact.MAX_MODEL_LEN, Fact.TENSOR_PARALLEL])
def test_some_facts_may_differ(fact):
    assert not between({fact: "1"}, {fact: "2"})
    assert not between({fact: "2"}, {fact: "1"})


@pytest.mark.parametrize(
    ("prefill", "decode", "agree"),
    [("16", "16", True), ("16", "64", True), ("64", "16", False), ("16", "24", False), ("16", "", False)],
)
def test_blocks_of_decode_may_be_multiples_of_those_of_prefill(prefill, decode, agree):
    assert bool(between(NIXL | {"block size": prefill}, NIXL | {"block size": decode})) is not agree
    assert bool(between({"block size": prefill}, {"block size": decode})) is not agree


@pytest.mark.parametrize(("prefill", "decode", "agree"), [("1", "2", True), ("2", "2", True), ("2", "1", False)])
def test_larger_blocks_need_as_many_devices_at_least(prefill, decode, agree):
    facts = {"block size": "16", "tensor parallel size": prefill}
    told = between(facts, {"block size": "32", "tensor parallel size": decode})
    assert bool(told) is not agree


def test_a_store_wants_equal_blocks():
    assert between(STORE | {"block size": "16"}, STORE | {"block size": "32"})


@pytest.mark.parametrize("fact", [Fact.HASH_ALGORITHM, Fact.HASH_SEED])
def test_how_prefixes_are_hashed_matters_only_to_a_connector_that_finds_blocks_by_it(fact):
    assert not between(NIXL | {fact: "1"}, NIXL | {fact: "2"})
    assert between(STORE | {fact: "1"}, STORE | {fact: "2"})


def test_an_engine_that_is_not_as_it_was_configured_is_told_with_both_values():
    declared = Identity("decode-0", {"block size": "16", "model": "/a"})
    assert not contradiction(declared, {"block size": "16", "vLLM version": "0.32.0"})
    assert not contradiction(Identity("decode-0", {"KV cache dtype": "auto"}), {"KV cache dtype": "fp8"})
    assert contradiction(declared, {"block size": "784", "model": "/a"}) == (
        "block size of decode-0 is 784 by its own account, 16 by the configuration"
    )
