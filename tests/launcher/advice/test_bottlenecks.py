"""Which bottleneck is named, from which figures."""

import pytest

from launcher.advice.signs import BOTTLENECKS, SIGNS, Finding, derived
from launcher.advice.situation import Origin, Situation
from tests.launcher.advice.examples import Facts

FULL: Facts = {"kv_cache_usage": 0.95, "preempted_share": 0.0}
SPEAKING: dict[str, tuple[Facts, Facts]] = {
    "memory/preemptions": ({"preempted_share": 0.01}, {"preempted_share": 0.009}),
    "memory/cache-full": (FULL | {"waiting": 1.0}, FULL | {"waiting": 0.9}),
    "memory/room-left": ({"kv_cache_usage": 0.94, "preempted_share": 0.0}, FULL),
    "memory/full-but-nobody-waits": (FULL | {"waiting": 0.9}, FULL | {"waiting": 1.0}),
    "ttft/above-objective": ({"ttft_p95": 0.5, "ttft_objective": 0.5}, {"ttft_p95": 0.49, "ttft_objective": 0.5}),
    "ttft/within-objective": ({"ttft_p95": 0.49, "ttft_objective": 0.5}, {"ttft_p95": 0.5, "ttft_objective": 0.5}),
    "tokens/above-objective": ({"tpot_p95": 0.05, "tpot_objective": 0.05}, {"tpot_p95": 0.04, "tpot_objective": 0.05}),
    "tokens/stalls": ({"itl_p99": 0.1, "itl_p50": 0.02}, {"itl_p99": 0.09, "itl_p50": 0.02}),
    "tokens/within-objective": ({"tpot_p95": 0.04, "tpot_objective": 0.05}, {"tpot_p95": 0.04}),
    "throughput/queue": ({"waiting": 1.0}, {"waiting": 0.9}),
    "throughput/no-queue": ({"waiting": 0.9}, {"waiting": 1.0}),
}


def found(facts: Facts, fact: str, origin: Origin = Origin.MEASURED) -> Finding:
    """What is known of one bottleneck."""
    return next(each for each in derived(Situation().plus(facts, origin))[1] if each.fact == fact)


def test_every_sign_has_its_examples():
    assert [sign.name for sign in SIGNS] == list(SPEAKING)


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: sign.name)
def test_a_sign_speaks_for_what_it_is_for_and_not_just_beside_that(sign):
    speaks, silent = SPEAKING[sign.name]
    finding = found(speaks, sign.fact)
    assert (finding.there, finding.origin) == (sign.there, Origin.MEASURED)
    assert "unknown" not in finding.because
    assert found(silent, sign.fact).because != finding.because


@pytest.mark.parametrize("fact", BOTTLENECKS)
def test_nothing_is_said_of_what_nobody_knows(fact):
    assert found({}, fact) == Finding(fact, None, None, "")


def test_memory_that_is_short_is_named_with_its_figures():
    finding = found({"preempted_share": 0.25}, "memory_short")
    assert finding.because == "engines threw KV away to make room: 25 % preemptions per request (usual: below 1 %)"


def test_an_answer_stands_against_what_was_measured_and_that_is_told():
    situation = Situation().plus({"memory_short": False}, Origin.ANSWERED)
    situation, findings = derived(situation.plus({"preempted_share": 0.25}, Origin.MEASURED))
    assert situation.value("memory_short") is False
    assert findings[0].there is False
    assert "25 % preemptions per request" in findings[0].against


def test_an_answer_that_was_measured_too_has_the_figures():
    situation = Situation().plus({"throughput_short": True}, Origin.ANSWERED)
    finding = derived(situation.plus({"waiting": 12.0}, Origin.MEASURED))[1][3]
    assert (finding.origin, finding.because) == (Origin.ANSWERED, "12 requests waited in engines on average")


def test_stalls_outweigh_a_mean_within_its_objective():
    facts: Facts = {"tpot_p95": 0.03, "tpot_objective": 0.05, "itl_p99": 0.9, "itl_p50": 0.02}
    assert found(facts, "tokens_slow").there is True


def test_a_draft_does_not_fit_where_memory_is_short_already():
    assert derived(Situation().plus({"preempted_share": 0.25}, Origin.MEASURED))[0].value("draft_fits") is False


@pytest.mark.parametrize(
    ("facts", "batch"),
    [
        ({"concurrency": 40.0, "devices": 1.0}, 40.0),
        ({"concurrency": 40.0, "devices": 4.0}, None),
        ({"concurrency": 40.0}, None),
        ({"concurrency": 4.0, "devices": 4.0}, 4.0),
    ],
)
def test_what_one_instance_has_follows_where_nobody_shares_it_or_it_is_little(facts, batch):
    assert derived(Situation().plus(facts, Origin.ANSWERED))[0].value("batch") == batch
