"""What follows from two models' scores."""

from dataclasses import replace

import pytest

from launcher.errors import QuantizeError
from launcher.quantize.gate.judge import judge
from launcher.quantize.gate.scores import Scores, damaged
from launcher.quantize.gate.shape import Judgement, Limits, Verdict
from tests.launcher.quantize.gate.scored import scores, task

LIMITS = Limits()
ORIGINAL = scores()


def judged(candidate: Scores, baseline: Scores = ORIGINAL, limits: Limits = LIMITS) -> Judgement:
    return judge(baseline, baseline, candidate, limits)


def with_task(worse: int, better: int, items: int = 1000, right: int = 600) -> Judgement:
    before, after = task(right, worse, better, items)
    return judged(replace(ORIGINAL, task=after), replace(ORIGINAL, task=before))


def check(judgement: Judgement, name: str):
    return next(each for each in judgement.checks if each.name == name)


def test_the_same_checkpoint_passes():
    made = judged(ORIGINAL)
    assert made.verdict is Verdict.PASS
    assert (made.is_proxy, made.records, made.positions, made.noise) == (True, 64, 3840, 0.0)
    assert check(made, "token KL").figure.high == 0
    assert check(made, "top-1 agreement").figure.low == 1
    assert set(made.kl_of_records) == {0.0}
    assert made.task is None


def test_a_little_noise_passes_and_is_told_in_numbers():
    made = judged(scores(noise=0.02))
    assert made.verdict is Verdict.PASS
    assert any("0.000 nats" in reason and "limit 0.1" in reason for reason in made.reasons)
    assert any("points" in reason and "limit 1" in reason for reason in made.reasons)


def test_a_broken_model_fails_and_the_reason_comes_first():
    made = judged(scores(noise=3.0))
    assert made.verdict is Verdict.FAIL
    assert {each.name for each in made.checks if each.verdict is Verdict.FAIL} >= {"token KL", "top-1 agreement"}
    assert "limit" in made.reasons[0]
    assert "with 95 % confidence" in made.reasons[0]
    assert made.checks[0].verdict is Verdict.FAIL


def test_a_difference_near_the_limit_is_inconclusive():
    noisy = scores(noise=0.4)
    near = check(judged(noisy), "token KL").figure.value
    made = judged(noisy, limits=Limits(kl=near, agreement=0.1, loss=50))
    assert made.verdict is Verdict.INCONCLUSIVE
    assert "it may be anything from" in made.reasons[0]


def test_few_records_say_nothing_even_of_the_same_model():
    few = scores(31)
    made = judged(few, few)
    assert made.verdict is Verdict.INCONCLUSIVE
    assert made.reasons[0].startswith("Only 31 held-out records could be compared, and fewer than 32")


def test_few_tokens_without_any_change_are_no_proof_of_none():
    short = scores(64, 2)
    made = judged(short, short)
    assert made.verdict is Verdict.INCONCLUSIVE
    assert check(made, "next-token accuracy").figure.high > 1


@pytest.mark.parametrize("places", [1, 64])
def test_a_model_without_usable_probabilities_fails(places):
    broken = tuple(damaged(f"record {number}: token 9 has the log-probability nan") for number in range(places))
    made = judged(Scores((*broken, *ORIGINAL.records[places:])))
    assert made.verdict is Verdict.FAIL
    assert made.reasons[0] == (
        f"The quantized model is damaged: it gives no usable probabilities in {places} of 64 questions (first: record "
        "0: token 9 has the log-probability nan)."
    )


def test_a_baseline_without_usable_probabilities_allows_no_comparison():
    broken = Scores((damaged("record 0: the engine answered 500"), *ORIGINAL.records[1:]))
    made = judged(scores(noise=3.0), broken)
    assert made.verdict is Verdict.INCONCLUSIVE
    assert made.reasons[0].startswith("The original model itself gives no usable probabilities in 1 of 64 questions")


def test_an_engine_that_does_not_repeat_itself_allows_no_comparison():
    made = judge(ORIGINAL, scores(noise=0.5, seed=3), ORIGINAL, LIMITS)
    assert made.verdict is Verdict.INCONCLUSIVE
    assert made.noise > LIMITS.kl / 2
    assert "asked twice, differs from itself" in made.reasons[0]


def test_the_noise_may_be_measured_on_the_first_records_only():
    assert judge(ORIGINAL, scores(4, noise=0.02), ORIGINAL, LIMITS).noise > 0


def test_a_labelled_task_decides():
    made = with_task(worse=2, better=2)
    assert (made.verdict, made.is_proxy) == (Verdict.PASS, False)
    assert made.task is not None
    assert (made.task.items, made.task.worse, made.task.better) == (1000, 2, 2)
    assert (made.task.baseline, made.task.candidate) == (0.6, 0.6)
    assert {each.name for each in made.checks} == {"task accuracy", "token KL", "top-1 agreement"}


def test_a_task_that_got_clearly_worse_fails():
    made = with_task(worse=80, better=20)
    assert made.verdict is Verdict.FAIL
    assert made.reasons[0].startswith("Of 1,000 labelled items the original has 60.0 % right")
    assert (
        "a loss of 6.00 points (80 became wrong, 20 became right); with 95 % confidence the loss is above 4."
        in (made.reasons[0])
    )


def test_a_task_with_too_few_items_is_inconclusive_even_if_nothing_changed():
    made = with_task(worse=0, better=0, items=200, right=150)
    assert made.verdict is Verdict.INCONCLUSIVE
    assert made.task is not None
    assert made.task.needed > 200
    assert f"about {made.task.needed:,} items would show it if nothing is lost" in made.reasons[0]


def test_a_loss_near_the_limit_is_not_promised_to_end_with_more_items():
    near = with_task(worse=60, better=10, items=5000, right=3000)
    assert near.verdict is Verdict.INCONCLUSIVE
    assert "the loss is too close to the limit for so many items" in near.reasons[0]


@pytest.mark.parametrize(
    ("right", "chance", "said"),
    [
        (260, 0.25, "26.0 % of 1,000 items right, which is not clearly more than guessing (25.0 %)"),
        (50, 0.0, "5.0 % of 1,000 items right (at least 10 % is asked for)"),
    ],
)
def test_a_task_that_the_original_cannot_do_says_nothing(right, chance, said):
    before, after = task(right, 0, 0, 1000, chance)
    made = judged(replace(ORIGINAL, task=after), replace(ORIGINAL, task=before))
    assert made.verdict is Verdict.INCONCLUSIVE
    assert made.reasons[0].startswith(f"The original model itself has {said}")
    assert "format of its chat template" in made.reasons[0]


def test_a_broken_model_fails_whatever_the_task_says():
    before, after = task(600, 0, 0)
    made = judged(scores(noise=3.0, task=after), replace(ORIGINAL, task=before))
    assert made.verdict is Verdict.FAIL
    assert check(made, "task accuracy").verdict is Verdict.PASS


def test_beside_a_task_a_difference_near_the_limit_does_no_harm():
    before, after = task(600, 0, 0)
    noisy = scores(noise=0.4)
    near = check(judged(noisy), "token KL").figure.value
    limits = Limits(kl=near, agreement=0.1)
    made = judged(replace(noisy, task=after), replace(ORIGINAL, task=before), limits)
    assert made.verdict is Verdict.PASS
    assert "not clearly more than the limit" in check(made, "token KL").reason


def test_answers_to_other_items_are_not_compared():
    before, _ = task(5, items=10)
    _, after = task(5, items=11)
    with pytest.raises(QuantizeError, match="asked other items"):
        judged(replace(ORIGINAL, task=after), replace(ORIGINAL, task=before))


def test_the_same_scores_give_the_same_judgement():
    assert judged(scores(noise=0.3)) == judged(scores(noise=0.3))


def test_every_reason_is_a_sentence():
    for made in (judged(scores(noise=0.3)), judged(scores(noise=3)), with_task(80, 20), with_task(0, 0, 100, 60)):
        assert all(reason[0].isupper() and reason.endswith((".", "?")) for reason in made.reasons)
