"""What is kept of prompts is numbers, and how much prompts differ among themselves."""

import random

from launcher.quantize.worker.duet_quantizing.distribution import distribution, lengths, quantile


def test_tokens_and_lengths_are_counted():
    told = distribution([[7, 7, 3], [7], list(range(100, 200))], max_tokens=5, seed=0)
    assert told["counts"] == {"3": 1, "7": 3, "100": 1, "101": 1, "102": 1, "103": 1, "104": 1}
    assert told["lengths"] == {"0": 1, "6": 1, "26": 1}  # 1, 3 and 100 tokens: whole, not cut
    assert (told["records"], told["max_tokens"], told["p99"]) == (3, 5, 100)


def test_prompts_of_independent_tokens_are_not_overdispersed():
    chance = random.Random(0)
    prompts = [chance.choices(range(500), k=60) for _ in range(200)]
    assert 0.9 < distribution(prompts, 2048, 0)["overdispersion"] < 1.1


def test_prompts_that_have_a_subject_each_are():
    chance = random.Random(0)
    prompts = [chance.choices(range(subject, subject + 25), k=60) for subject in chance.choices(range(475), k=200)]
    told = distribution(prompts, 2048, 0)
    assert told["overdispersion"] > 1.5
    assert told == distribution(prompts, 2048, 0)


def test_a_few_prompts_tell_nothing_of_it():
    assert distribution([[1], [2]], 10, 0)["overdispersion"] == 1.0


def test_quantiles_are_values_that_were_there():
    values = list(range(1, 101))
    assert [quantile(values, share) for share in (0.5, 0.9, 0.99)] == [50, 90, 99]
    assert quantile([4], 0.99) == 4
    assert quantile([], 0.5) == 0
    assert lengths([[1] * 3, [1] * 9]) == {"p50": 3, "p90": 9, "p99": 9, "max": 9}
