"""Drift is seen where live prompts have changed, and rarely where they have not."""

import random

import numpy as np
import pytest

from launcher.quantize import drift
from launcher.quantize.drift import Level, judge
from launcher.quantize.worker.duet_quantizing.distribution import distribution, divergence

WORDS = 3000
SAME = 30
"""Pairs of samples of the same traffic, for how often drift is seen where none is."""


def prompts(count: int, chance: random.Random, *, first: int = 0, median: int = 60) -> list[list[int]]:
    """As people write: some words come much more often than others, and each prompt has a subject of its own."""
    common = [1 / (rank + 3) for rank in range(WORDS)]
    made = []
    for _ in range(count):
        size = max(4, int(chance.lognormvariate(0, 0.6) * median))
        subject = chance.randrange(WORDS)
        own = [first + (subject + chance.randrange(30)) % WORDS for _ in range(size // 3)]
        made.append([first + word for word in chance.choices(range(WORDS), common, k=size - len(own))] + own)
    return made


def told(texts: list[list[int]], seed: int = 0, max_tokens: int = 2048):
    return distribution(texts, max_tokens, seed)


@pytest.fixture(scope="module")
def calibrated():
    return told(prompts(512, random.Random(1)))


def test_prompts_of_the_same_traffic_have_not_drifted(calibrated):
    found = judge(calibrated, told(prompts(512, random.Random(2))))
    assert found.level is Level.FINE
    assert found.reasons == ("Live prompts look like those of the calibration, in their words and in their lengths.",)
    assert (found.live_records, found.max_tokens) == (512, 2048)


def test_the_same_seed_finds_the_same(calibrated):
    live = told(prompts(256, random.Random(3)))
    assert judge(calibrated, live, 5) == judge(calibrated, live, 5)


@pytest.mark.parametrize("live", [512, 256])
def test_a_fifth_of_other_text_is_caught(calibrated, live: int):
    chance = random.Random(live)
    other = prompts(live // 5, chance, first=WORDS // 2)
    found = judge(calibrated, told(prompts(live - len(other), chance) + other))
    assert found.level is Level.WARNING
    assert 1 < found.ratio < 1.5
    assert "The words of live prompts are different" in found.reasons[0]


def test_other_text_altogether_is_an_alert(calibrated):
    found = judge(calibrated, told(prompts(512, random.Random(4), first=WORDS)))
    assert found.level is Level.ALERT
    assert found.ratio > 1.5
    assert "much different" in found.reasons[0]


def test_other_lengths_are_caught_where_the_words_are_the_same(calibrated):
    some, many = (judge(calibrated, told(prompts(512, random.Random(5), median=median))) for median in (75, 150))
    assert (some.level, many.level) == (Level.WARNING, Level.ALERT)
    assert 0.1 < some.length_psi < 0.25 < many.length_psi
    assert any("The lengths of live prompts are different" in reason for reason in many.reasons)


def test_prompts_longer_than_any_that_was_calibrated_are_told():
    cut = told(prompts(512, random.Random(1)), max_tokens=100)
    found = judge(cut, told(prompts(512, random.Random(2)), max_tokens=100))
    assert found.level is Level.WARNING
    assert "longer than 100 tokens" in found.reasons[0]


def test_of_few_live_prompts_nothing_is_said(calibrated):
    found = judge(calibrated, told(prompts(63, random.Random(6), first=WORDS)))
    assert found.level is Level.UNKNOWN
    assert found.reasons == ("63 live records are too few to tell, at least 64 are needed, better 512.",)


def test_drift_is_seldom_seen_where_nothing_has_changed():
    seen = []
    for seed in range(SAME):
        chance = random.Random(1000 + seed)
        sizes = (128, chance.choice((64, 128, 256)))
        seen.append(judge(*(told(prompts(size, chance, median=30), seed) for size in sizes), seed).level)
    assert sum(level is not Level.FINE for level in seen) <= 1


def test_without_overdispersion_the_same_traffic_would_often_be_called_changed():
    chance = random.Random(7)
    one, other = (told(prompts(256, chance)) for _ in range(2))
    assert one["overdispersion"] > 1.1
    assert judge({**one, "overdispersion": 1.0}, other).ratio > 1


def test_worker_and_parent_mean_the_same_divergence():
    one, other = np.array([5, 0, 3, 9]), np.array([1, 4, 3, 0])
    assert divergence(one, other) == pytest.approx(drift._divergence(one, other))
    assert drift._divergence(np.array([1, 0]), np.array([0, 1])) == pytest.approx(1.0)
    assert drift._divergence(one, one) == 0.0
