"""Few questions: only what can still change the advice."""

from launcher.advice.facts import FACTS
from launcher.advice.judge import advise
from launcher.advice.questions import next_question
from launcher.advice.rule import Technique, Verdict
from launcher.advice.situation import Origin, Situation
from tests.launcher.advice.examples import Facts

CLOUD: Facts = {"memory_short": False, "ttft_slow": False, "throughput_short": False, "tokens_slow": True}


def asked(answers: Facts, known: Facts | None = None) -> list[str]:
    """The questions, when everything else is not known."""
    situation = Situation().plus(known or {}, Origin.ANSWERED)
    declined: set[str] = set()
    questions: list[str] = []
    while (question := next_question(situation, declined)) is not None:
        questions.append(question.name)
        if question.name in answers:
            situation = situation.plus({question.name: answers[question.name]}, Origin.ANSWERED)
        else:
            declined.add(question.name)
    return questions


def test_the_bottlenecks_come_first():
    assert asked({})[:4] == ["memory_short", "ttft_slow", "tokens_slow", "throughput_short"]


def test_nothing_more_is_asked_when_nothing_is_short():
    assert asked(CLOUD | {"tokens_slow": False}) == ["memory_short", "ttft_slow", "tokens_slow", "throughput_short"]


def test_what_is_known_is_not_asked():
    assert "memory_short" not in asked({}, {"memory_short": True})


def test_nothing_is_asked_about_a_technique_that_is_out_of_the_question():
    questions = asked(CLOUD | {"concurrency": 5.0})
    assert not {"rdma", "monitoring", "kubernetes", "prefix_hit_rate", "devices"} & set(questions)
    assert {"predictable", "temperature"} <= set(questions)
    many = asked(CLOUD | {"concurrency": 500.0, "batch": 60.0})
    assert not {"predictable", "temperature", "draft_fits"} & set(many)
    assert {"rdma", "monitoring"} <= set(many)


def test_every_question_is_asked_once_and_has_an_end():
    questions = asked({})
    assert len(questions) == len(set(questions)) <= sum(bool(kind.question) for kind in FACTS.values())


def test_answers_to_all_questions_are_enough_for_a_verdict():
    answers = CLOUD | {
        "concurrency": 3.0, "output_tokens_p95": 500.0, "predictable": True, "temperature": 0.2, "exact_work": True,
        "min_p_or_logit_bias": False, "device": "cuda", "devices": 1.0, "compute_capability": 9.0, "parameters": 8.0,
        "draft_fits": True, "quantized": "none", "speculation": "none",
    }  # fmt: skip
    assert set(asked(answers)) <= set(answers)
    advice = advise(Situation().plus(answers, Origin.ANSWERED))
    assert {each.technique: each.verdict for each in advice.judgements} == {
        Technique.FP8: Verdict.YES,
        Technique.INT8: Verdict.YES,
        Technique.INT4: Verdict.YES,
        Technique.NGRAM: Verdict.YES,
        Technique.DRAFT: Verdict.YES,
        Technique.PD: Verdict.NO,
        Technique.REPLICAS: Verdict.NO,
    }
