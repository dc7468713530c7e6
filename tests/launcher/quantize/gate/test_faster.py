"""Whether one model is faster than another."""

from dataclasses import replace

import numpy as np
import pytest

from launcher.quantize.gate.faster import compare_speed
from launcher.quantize.gate.timings import SpeedSample, Timing


def sample(factor: float, seed: int, spread: float = 0.03, others: float = 0.01) -> SpeedSample:
    random = np.random.default_rng(seed)

    def timings(count: int) -> tuple[Timing, ...]:
        return tuple(
            Timing(0.1 * factor * each, 1.65 * factor * each, 32) for each in random.lognormal(0, spread, count)
        )

    return SpeedSample(timings(8), timings(24), 4, others)


def test_a_faster_one_is_called_faster():
    made = compare_speed(sample(1.0, 1), sample(0.7, 2))
    assert made.throughput.low > 1.3
    assert made.ttft.value == pytest.approx(0.7, rel=0.05)
    assert made.tpot.value == pytest.approx(0.7, rel=0.05)
    assert "With 4 requests at once, the quantized model is faster: 4" in made.reason
    assert "With one request at a time, the quantized model is faster" in made.reason
    assert (made.concurrency, made.requests) == (4, 24)
    assert made.alone is not None
    assert (made.alone.concurrency, made.alone.requests) == (1, 8)


def test_a_slower_one_is_called_slower():
    assert "the quantized model is slower" in compare_speed(sample(1.0, 1), sample(3.0, 2)).reason


@pytest.mark.parametrize(("factor", "spread"), [(1.0, 0.03), (0.97, 0.001), (0.8, 1.5)])
def test_a_small_or_unsure_difference_is_none(factor, spread):
    assert "no difference in speed is shown" in compare_speed(sample(1.0, 1, spread), sample(factor, 2, spread)).reason


def test_the_original_is_told_in_seconds_and_tokens():
    made = compare_speed(sample(1.0, 1, 0.0), sample(1.0, 2, 0.0))
    assert made.baseline_ttft == pytest.approx(0.1)
    assert made.baseline_tpot == pytest.approx(0.05)
    assert made.baseline_throughput == pytest.approx(4 * 32 / 1.65)


def test_only_requests_that_both_answered_are_compared():
    short = sample(1.0, 2)
    made = compare_speed(sample(1.0, 1), SpeedSample(short.alone[:4], short.together[:8], 4, 0.0))
    assert made.requests == 8


@pytest.mark.parametrize("side", [0, 1])
def test_a_busy_machine_allows_no_verdict(side):
    samples = [sample(1.0, 1, others=0.01), sample(0.3, 2, others=0.01)]
    samples[side] = replace(samples[side], others=0.4)
    made = compare_speed(*samples)
    assert made.reason.startswith("Whether it is faster cannot be told: something else used 40% of this machine's")
    assert made.throughput.value > 3
