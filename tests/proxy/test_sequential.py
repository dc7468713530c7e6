"""The comparison of two arms, by simulation: it may be read after every batch, and is right all the same."""

from collections import Counter
from dataclasses import replace

import pytest

from proxy.experiment.judged import questions
from proxy.sequential import ALPHA, Mass, Question, Verdict, difference, judge, radius
from proxy.split import Experiment
from tests.proxy.experiment_simulation import Simulated

SAYS_SOMETHING = (Verdict.BETTER, Verdict.WORSE)
ASKED = questions(Experiment("main", "int8"))
SHARE = Question(0.05, 0.05, higher_is_better=True, is_share=True)
GOODPUT, TIMES = (ASKED[name].alpha for name in ("goodput", "ttft"))
WITHOUT_EFFECT = (
    Simulated(600),
    Simulated(400, spread=2.0, likeness=0.6),
    Simulated(1200, share=0.1, spread=1.0),
    Simulated(600, base=0.98, likeness=0.2, spread=1.0),
    Simulated(600, base=None),
    Simulated(1200, base=None, share=0.1, spread=1.0, likeness=0.6),
    Simulated(400, base=None, copied=True),
)


@pytest.mark.parametrize("setting", range(len(WITHOUT_EFFECT)))
def test_without_an_effect_at_most_1_in_20_experiments_ever_says_that_there_is_one(setting):
    experiments = 400
    wrong = sum(WITHOUT_EFFECT[setting].run(seed)[0] in SAYS_SOMETHING for seed in range(experiments))
    assert wrong <= 0.05 * experiments


@pytest.mark.parametrize(
    ("simulated", "power"),
    [
        (Simulated(2000, spread=1.0, likeness=0.2, effect=-0.1, alpha=GOODPUT), 0.95),
        (Simulated(2000, spread=1.0, likeness=0.2, effect=-0.05, alpha=GOODPUT), 0.6),
        (Simulated(4000, spread=1.0, likeness=0.2, effect=-0.1, share=0.1, alpha=GOODPUT), 0.95),
        (Simulated(2000, spread=1.0, likeness=0.2, effect=-0.2, base=None, alpha=TIMES), 0.9),
        (Simulated(800, spread=1.0, likeness=0.2, effect=-0.1, base=None, alpha=TIMES, copied=True), 0.9),
    ],
    ids=["10 points", "5 points", "10 points at 10 %", "a fifth of the spread", "a tenth, of copies"],
)
def test_an_effect_is_found_as_often_as_documented(simulated, power):
    experiments = 60
    told = Counter(simulated.run(seed)[0] for seed in range(experiments))
    assert told[Verdict.WORSE] >= power * experiments
    assert told[Verdict.BETTER] == 0


def test_all_metrics_together_are_wrong_with_the_chance_that_is_stated():
    assert sum(question.alpha for question in ASKED.values()) == pytest.approx(ALPHA)


def test_when_there_is_much_data_and_no_effect_that_is_said():
    simulated = Simulated(6000, spread=1.0, likeness=0.1, looks=5)
    assert Counter(simulated.run(seed)[0] for seed in range(20))[Verdict.NO_DIFFERENCE] >= 19


def many(good: float, *, n: int = 20, buckets: int = 100, first: int = 0) -> dict[int, Mass]:
    """Buckets of equal size of which each has this share of good requests."""
    return {first + bucket: Mass(n, n * good, n * good) for bucket in range(buckets)}


def verdict(a: dict[int, Mass], b: dict[int, Mass], question: Question = SHARE) -> Verdict:
    return judge(a, b, question, minimum_requests=200, minimum_buckets=30).verdict


def test_one_huge_session_never_convinces():
    plenty = many(0.8)
    for n in (1_000, 100_000, 10_000_000):
        alone = {500: Mass(n, 0.0, 0.0)}
        assert verdict(plenty, alone) is Verdict.NOT_ENOUGH
        assert verdict(plenty, many(0.8, first=100) | alone) is Verdict.NOT_ENOUGH
        assert verdict(many(0.8, first=100) | alone, plenty) is Verdict.NOT_ENOUGH


def test_what_is_better_depends_on_the_metric():
    more, less = many(0.9, first=200), many(0.7)
    errors = replace(SHARE, higher_is_better=False)
    assert verdict(less, more) is verdict(more, less, errors) is Verdict.BETTER
    assert verdict(more, less) is verdict(less, more, errors) is Verdict.WORSE


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ({}, many(0.8), "A has 0 of the 200 requests that are the least"),
        (many(0.8), many(0.8, n=1), "B has 100 of the 200 requests that are the least"),
        (many(0.8), many(0.8, n=50, buckets=29), "the requests of B are as few sessions as 29 buckets"),
        (many(0.8), many(0.8, n=2, first=100), "more requests make it smaller"),
    ],
)
def test_too_little_is_said_with_what_is_missing(a, b, said):
    found = judge(a, b, SHARE, minimum_requests=200, minimum_buckets=30)
    assert found.verdict is Verdict.NOT_ENOUGH
    assert said in found.reason


def test_no_failure_so_far_is_not_taken_for_none_ever():
    rare = Question(0.001, 0.05, higher_is_better=False, is_share=True)
    found = judge(many(0.0, n=2), many(0.0, n=2, first=100), rare, minimum_requests=200, minimum_buckets=30)
    assert found.verdict is Verdict.NOT_ENOUGH
    assert found.high is not None
    assert found.high > 0.01


def test_copies_are_compared_with_their_originals():
    """Sessions differ much, and each copy a little from its original: only pairs show the latter."""
    a = {bucket: Mass(10, bucket, bucket**2 / 10) for bucket in range(100)}
    b = {bucket: Mass(10, bucket + 1, (bucket + 1) ** 2 / 10) for bucket in range(100)}
    apart = {bucket + 100: mass for bucket, mass in b.items()}
    assert difference(a, b).value == pytest.approx(difference(a, apart).value) == pytest.approx(0.1)
    assert difference(a, b).variance < difference(a, apart).variance


def test_the_interval_is_wider_than_that_of_a_single_look_and_shrinks_with_the_variance():
    assert radius(0.0, 0.05, 0.05) == 0
    for deviation in (0.5, 0.05, 0.005):
        assert radius(deviation**2, 0.05, 0.05) > 1.96 * deviation
    assert radius(0.0001, 0.05, 0.05) < radius(0.001, 0.05, 0.05) < radius(0.001, 0.01, 0.05)
