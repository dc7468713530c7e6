"""How rules become a verdict, and verdicts the next step."""

from pathlib import Path

import pytest
import typer.main

from launcher import loader
from launcher.advice.advice import Advice, Judgement
from launcher.advice.judge import advise, open_facts
from launcher.advice.rule import Stage, Technique, Verdict
from launcher.advice.situation import Origin, Situation
from launcher.advice.starts import CANDIDATES, commands
from launcher.advice.techniques import ABOUT
from launcher.cli import app
from tests.launcher.advice.examples import NOTHING, Facts

ONE_USER: Facts = {
    "memory_short": False,
    "ttft_slow": False,
    "tokens_slow": True,
    "throughput_short": False,
    "concurrency": 2.0,
    "predictable": True,
    "temperature": 0.0,
    "min_p_or_logit_bias": False,
    "exact_work": False,
    "output_tokens_p95": 400.0,
    "prompt_tokens_p95": 3000.0,
    "device": "cuda",
    "devices": 1.0,
    "compute_capability": 8.6,
    "parameters": 8.0,
    "draft_fits": True,
    "quantized": "none",
    "speculation": "none",
    "pd": False,
}
CROWD: Facts = ONE_USER | {
    "concurrency": 200.0,
    "batch": 50.0,
    "devices": 8.0,
    "prefix_hit_rate": 0.1,
    "kv_transfer_time_p50": 0.01,
    "kv_transfer_time_p95": 0.02,
    "prefill_time_p50": 0.5,
    "itl_p99": 0.5,
    "itl_p50": 0.02,
    "rdma": True,
    "monitoring": True,
    "kubernetes": True,
}


def advice(facts: Facts) -> Advice:
    return advise(Situation().plus(facts, Origin.ANSWERED))


def judged(facts: Facts, technique: Technique) -> Judgement:
    return next(each for each in advice(facts).judgements if each.technique is technique)


def next_of(facts: Facts) -> tuple[Technique, Verdict] | None:
    step = advice(facts).next_step
    return None if step is None else (step.technique, step.verdict)


def test_every_technique_is_judged_in_a_fixed_order():
    assert [each.technique for each in advice({}).judgements] == list(Technique)
    assert set(ABOUT) == set(Technique)


def test_the_same_situation_gives_the_same_advice():
    assert advice(CROWD) == advice(dict(reversed(CROWD.items())))


def test_without_facts_nothing_is_recommended_and_nothing_is_ruled_out():
    unknown = advice({})
    assert {each.verdict for each in unknown.judgements} == {Verdict.CANNOT_SAY}
    assert (unknown.verdict, unknown.next_step, unknown.start) == (Verdict.CANNOT_SAY, None, None)
    assert unknown.skipped == (Stage.QUANTIZATION, Stage.SPECULATION, Stage.PD)


def test_a_no_outweighs_every_yes():
    judgement = judged(ONE_USER | {"temperature": 1.5}, Technique.DRAFT)
    assert judgement.verdict is Verdict.NO
    assert [reason.rule.verdict for reason in judgement.reasons] == [Verdict.NO, Verdict.YES]
    assert judgement.change == ("a lower temperature, or requests of low temperature on instances of their own",)


def test_first_measure_outweighs_a_yes():
    assert judged(ONE_USER, Technique.DRAFT).verdict is Verdict.YES
    assert judged(ONE_USER | {"predictable": False}, Technique.DRAFT).verdict is Verdict.FIRST_MEASURE


def test_a_yes_is_none_as_long_as_a_no_is_possible():
    facts = {name: value for name, value in ONE_USER.items() if name != "temperature"}
    judgement = judged(facts, Technique.DRAFT)
    assert judgement.verdict is Verdict.FIRST_MEASURE
    assert [each.missing for each in judgement.undecided] == [("temperature",)]
    assert list(open_facts(advice(facts))) == ["temperature"]


def test_a_no_needs_no_further_facts():
    assert judged({"devices": 1.0}, Technique.PD).verdict is Verdict.NO
    assert judged({"devices": 1.0}, Technique.PD).undecided == ()


def test_stages_come_in_their_order():
    assert next_of(ONE_USER) == (Technique.INT8, Verdict.YES)
    assert next_of(ONE_USER | {"quantized": "int8"}) == (Technique.DRAFT, Verdict.YES)
    assert next_of(ONE_USER | {"quantized": "int8", "draft_fits": False}) == (Technique.NGRAM, Verdict.YES)
    assert next_of(CROWD | {"quantized": "int8"}) == (Technique.PD, Verdict.YES)


def test_a_stage_that_cannot_be_judged_is_told():
    facts = {name: value for name, value in CROWD.items() if name != "quantized"}
    assert advice(facts).skipped == (Stage.QUANTIZATION,)
    assert next_of(facts) == (Technique.PD, Verdict.YES)


@pytest.mark.parametrize(
    ("capability", "technique"), [(8.0, Technique.INT8), (9.0, Technique.FP8), (10.0, Technique.FP8)]
)
def test_eight_bits_are_those_that_the_device_computes_in(capability, technique):
    assert next_of(CROWD | {"compute_capability": capability}) == (technique, Verdict.YES)


def test_on_one_gpu_that_is_too_small_the_smallest_weights_come_first():
    facts = ONE_USER | {"memory_short": True, "draft_fits": False}
    assert next_of(facts) == (Technique.INT4, Verdict.YES)
    assert next_of(facts | {"devices": 2.0}) == (Technique.INT8, Verdict.YES)
    assert next_of(facts | {"parameters": 70.0, "exact_work": True}) == (Technique.INT8, Verdict.YES)


def test_more_replicas_are_what_is_left_when_no_technique_helps():
    facts = CROWD | {
        "quantized": "fp8", "tokens_slow": False, "throughput_short": True, "waiting": 20.0, "prefix_hit_rate": 0.9,
    }  # fmt: skip
    assert next_of(facts) == (Technique.REPLICAS, Verdict.YES)
    assert advice(facts).start is None


def test_where_nothing_is_short_everything_is_a_no():
    nothing = advice(NOTHING)
    assert {each.verdict for each in nothing.judgements} == {Verdict.NO}
    assert (nothing.verdict, nothing.next_step) == (Verdict.NO, None)


def test_clients_that_send_too_little_are_not_cured_by_faster_engines():
    facts = NOTHING | {"throughput_short": True, "waiting": 0.0, "batch": 1.0}
    assert {each.verdict for each in advice(facts).judgements} == {Verdict.NO}
    assert "clients or the network send too little" in judged(facts, Technique.REPLICAS).reasons[0].text


def test_what_is_in_use_and_works_is_kept_though_nothing_is_short_any_more():
    facts = NOTHING | {
        "quantized": "int8", "speculation": "eagle3", "acceptance": 0.8, "batch": 4.0, "pd": True, "pd_share": 0.9,
    }  # fmt: skip
    for technique in (Technique.INT8, Technique.DRAFT, Technique.PD):
        judgement = judged(facts, technique)
        assert (judgement.in_use, judgement.verdict) == (True, Verdict.YES)
    assert advice(facts).withdraw == ()


@pytest.mark.parametrize(
    ("facts", "technique", "reason"),
    [
        ({"speculation": "ngram", "acceptance": 0.3}, Technique.NGRAM, "only 30 % of the drafts of ngram are accepted"),
        ({"speculation": "eagle3", "acceptance": 0.9, "batch": 64.0}, Technique.DRAFT, "64 requests at a time"),
        ({"pd": True, "pd_share": 1.0, "concurrency": 3.0}, Technique.PD, "3 requests at the same time"),
        ({"quantized": "fp8", "device": "cpu"}, Technique.FP8, "3 to 10 times slower"),
    ],
)
def test_what_is_in_use_and_does_harm_is_to_be_taken_out(facts, technique, reason):
    [withdrawn] = advice(facts).withdraw
    assert withdrawn.technique is technique
    assert reason in withdrawn.reasons[0].text


@pytest.mark.parametrize(
    ("facts", "profile"),
    [
        (CROWD | {"quantized": "int8"}, "api-throughput"),
        (CROWD | {"quantized": "int8", "devices": 2.0}, "batch-cost"),
        (ONE_USER | {"quantized": "int8"}, "interactive"),
        (ONE_USER | {"quantized": "int4"}, "single-gpu"),
        (ONE_USER | {"memory_short": True, "draft_fits": False}, "single-gpu"),
        (ONE_USER | {"device": "cpu"}, "demo"),
    ],
)
def test_it_starts_from_a_shipped_profile(facts, profile):
    start = advice(facts).start
    assert start is not None
    assert start.profile == profile


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda each: f"{each.start.profile}-{each.techniques[0]}")
def test_every_start_is_a_profile_that_ships_and_takes_its_overrides(candidate):
    assert candidate.start.profile in loader.shipped_profiles()
    loaded = loader.load(candidate.start.profile, candidate.start.overrides)
    if Technique.PD in candidate.techniques and candidate.start.profile != "demo":
        assert loaded.roles.prefill is not None
    if Technique.FP8 in candidate.techniques and candidate.start.profile != "demo":
        assert loaded.quantization.weights.startswith("fp8")


@pytest.mark.parametrize("technique", Technique)
def test_every_command_that_it_names_exists(technique):
    verbs = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    named = [command for each in CANDIDATES for command in commands(each.start)]
    named += [part for gain in ABOUT[technique].gains for part in gain.measure.split("`")[1::2]]
    assert {command.split()[1] for command in named} <= verbs
    assert {Path(command.split()[0]).name for command in named} == {"launcher"}
