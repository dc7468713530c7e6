"""Two servers are judged by pairs of blocks: what is said to differ does, and what cannot be known is said, too."""

import math

import numpy as np
import pytest

from launcher.measure import compare
from launcher.measure.compare_order import order, pair_of
from launcher.measure.compare_shape import Block, Effect, Side, Verdict
from launcher.measure.figures import figures
from launcher.measure.figures_shape import Objectives, Span
from launcher.measure.sample import Sample


def sample(number=0, *, ttft=0.1, total=1.0, tokens=10, sent=0.0, error=None, text=None):
    return Sample(number, sent, sent, ttft, total, 5, tokens, tokens, 0.1, text=text, error=error)


def simulated(rng, *, pairs, noise, effects=(0.0, 0.0, 0.0, 0.0), drift=0.0):
    """Blocks whose metrics have noise of the pair, of the block (by which pairs differ), and a steady drift."""
    blocks = []
    of_pair = rng.normal(0, 0.2, pairs)
    for number, side in enumerate(order(pairs)):
        shared = of_pair[pair_of(number)] + drift * number + rng.normal(0, noise / 2)
        metrics = {
            metric.name: math.exp(shared + rng.normal(0, noise) + (effect if side is Side.B else 0.0))
            for metric, effect in zip(compare.METRICS, effects, strict=True)
        }
        blocks.append(Block(side, pair_of(number), (), 1.0, metrics=metrics))
    return blocks


def test_blocks_take_turns_so_that_neither_side_is_always_first():
    assert "".join(order(4)) == "abbaabba"
    assert [pair_of(number) for number in range(4)] == [0, 0, 1, 1]


def test_no_difference_is_called_one_in_at_most_5_of_100_comparisons():
    rng = np.random.default_rng(1)
    runs, single, whole = 800, 0, 0
    for _ in range(runs):
        found = compare.compare("a", "b", simulated(rng, pairs=4, noise=0.05))
        single += sum(each.verdict in (Verdict.BETTER, Verdict.WORSE) for each in found.effects)
        whole += found.verdict in (Verdict.BETTER, Verdict.WORSE, Verdict.TRADED)
    allowed = 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / runs)
    assert single / (4 * runs) <= allowed
    assert whole / runs <= allowed


def test_a_steady_drift_of_the_machine_is_no_difference():
    rng = np.random.default_rng(2)
    found = [compare.compare("a", "b", simulated(rng, pairs=6, noise=0.02, drift=0.03)) for _ in range(300)]
    wrong = sum(each.verdict in (Verdict.BETTER, Verdict.WORSE, Verdict.TRADED) for each in found)
    assert wrong / len(found) <= 0.05


def test_intervals_hold_the_true_ratio_in_95_of_100_comparisons():
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(1000):
        blocks = simulated(rng, pairs=5, noise=0.05, effects=(0.0, math.log(1.1), 0.0, 0.0))
        ratio = compare.compare("a", "b", blocks).effects[1].ratio
        inside += ratio.low <= 1.1 <= ratio.high
    assert 0.93 <= inside / 1000 <= 0.97


@pytest.mark.parametrize(("pairs", "noise", "effect", "power"), [(4, 0.03, 0.15, 0.85), (8, 0.05, 0.10, 0.80)])
def test_power_is_as_documented(pairs, noise, effect, power):
    rng = np.random.default_rng(4)
    runs, found = 300, 0
    for _ in range(runs):
        blocks = simulated(rng, pairs=pairs, noise=noise, effects=(0.0, 0.0, math.log(1 + effect), 0.0))
        found += compare.compare("a", "b", blocks).effects[2].verdict is Verdict.BETTER
    assert found / runs >= power


def effect(metric, *ratios) -> Effect:
    return compare.effect(metric, [(1.0, ratio) for ratio in ratios])


def test_less_latency_is_better_and_less_throughput_is_worse():
    assert effect(compare.TTFT, 0.8, 0.81, 0.79).verdict is Verdict.BETTER
    assert effect(compare.THROUGHPUT, 0.8, 0.81, 0.79).verdict is Verdict.WORSE


def test_an_interval_within_the_margin_shows_no_difference_and_a_wide_one_not_enough_data():
    assert effect(compare.TPOT, 1.001, 0.999, 1.002, 0.998).verdict is Verdict.SAME
    wide = effect(compare.TPOT, 0.7, 1.4, 1.1)
    assert wide.verdict is Verdict.UNKNOWN
    assert "more pairs" in wide.reason


def test_a_small_difference_that_is_shown_is_told_to_be_within_the_margin():
    found = effect(compare.THROUGHPUT, 1.020, 1.021, 1.019)
    assert found.verdict is Verdict.BETTER
    assert "within the margin" in found.reason


def test_one_pair_says_nothing_of_another():
    found = effect(compare.TPOT, 2.0)
    assert found.verdict is Verdict.UNKNOWN
    assert (found.ratio.low, found.ratio.high) == (0.0, math.inf)


def test_a_pair_of_which_one_side_told_nothing_is_not_left_out_in_silence():
    found = compare.effect(compare.GOODPUT, [(10.0, 11.0), (10.0, 11.0), (10.0, 0.0)])
    assert found.verdict is Verdict.UNKNOWN
    assert "1 of 3 pairs" in found.reason


def test_first_token_better_and_further_tokens_worse_is_a_trade_and_the_sentence_shows_both():
    rng = np.random.default_rng(5)
    blocks = simulated(rng, pairs=6, noise=0.01, effects=(math.log(0.5), math.log(1.5), 0.0, 0.0))
    found = compare.compare("pd", "aggregated", blocks)
    assert found.verdict is Verdict.TRADED
    assert "TTFT, median -49.8 % (better)" in found.sentence
    assert "time by output token, median +50.5 % (worse)" in found.sentence


def test_metrics_count_complete_answers_only_and_goodput_those_within_objectives():
    samples = [sample(0, sent=0.0), sample(1, ttft=0.5, total=1.4, sent=1.0), sample(2, error="HTTP 503", tokens=0)]
    span = Span(0.0, 4.0)
    told = compare.measured(figures(samples, span, Objectives(ttft=0.2)))
    assert told["throughput"] == pytest.approx(20 / 4)
    assert told["goodput"] == pytest.approx(10 / 4)
    assert "goodput" not in compare.measured(figures(samples, span, Objectives()))
