"""Decision: whether one model is served faster than another."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from launcher.quantize.gate.intervals import resampled
from launcher.quantize.gate.shape import Figure, Speed
from launcher.quantize.gate.timings import SpeedSample, Timing

if TYPE_CHECKING:
    import numpy as np

_ALIKE = 0.05
"""Two servings of the same model on a machine that is not all ours differ by so much without any reason."""
_BUSY = 0.15
"""Share of the processors above which others falsify a measurement: they come and go, which no interval tells."""


def compare_speed(baseline: SpeedSample, candidate: SpeedSample) -> Speed:
    """Ratios of the requests several at once, with those one at a time as ``alone``; intervals over requests (95 %)."""
    alone = _compared(baseline.alone, candidate.alone, 1, None)
    speed = _compared(baseline.together, candidate.together, baseline.concurrency, alone)
    if (others := max(baseline.others, candidate.others)) <= _BUSY:
        return speed
    reason = (
        f"Whether it is faster cannot be told: something else used {others:.0%} of this machine's processors "
        f"meanwhile. Measured were {speed.throughput.value:.2f} times as many tokens a second with {speed.concurrency} "
        "requests at once; measure again on an idle machine."
    )
    return replace(speed, reason=reason, alone=replace(alone, reason=reason, is_disturbed=True), is_disturbed=True)


def _compared(baseline: Sequence[Timing], candidate: Sequence[Timing], concurrency: int, alone: Speed | None) -> Speed:
    pairs = [*zip(baseline, candidate, strict=False)]
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    throughput = _ratio(_rate, before, after, lambda each: each.total, lambda each: each.tokens)
    return Speed(
        ttft=_ratio(_median, before, after, lambda each: each.ttft),
        tpot=_ratio(_median, before, after, lambda each: each.tpot),
        throughput=throughput,
        baseline_ttft=_now(_median, before, lambda each: each.ttft),
        baseline_tpot=_now(_median, before, lambda each: each.tpot),
        baseline_throughput=concurrency * _now(_rate, before, lambda each: each.total, lambda each: each.tokens),
        concurrency=concurrency,
        requests=len(pairs),
        reason=_reason(throughput, concurrency, len(pairs)) + (f" {alone.reason}" if alone else ""),
        alone=alone,
    )


_Values = Callable[[Timing], float]


def _ratio(statistic: Callable[..., "np.ndarray"], a: Sequence[Timing], b: Sequence[Timing], *of: _Values) -> Figure:
    import numpy as np

    def ratio(*arrays: "np.ndarray", axis: int) -> "np.ndarray":
        half = len(arrays) // 2
        return np.asarray(statistic(*arrays[half:], axis=axis) / statistic(*arrays[:half], axis=axis))

    return resampled(ratio, [[value(each) for each in side] for side in (a, b) for value in of], 0.95)


def _now(statistic: Callable[..., "np.ndarray"], side: Sequence[Timing], *of: _Values) -> float:
    import numpy as np

    return float(statistic(*(np.asarray([value(each) for each in side]) for value in of), axis=0))


def _median(values: "np.ndarray", *, axis: int) -> "np.ndarray":
    import numpy as np

    return np.asarray(np.median(values, axis=axis))


def _rate(seconds: "np.ndarray", tokens: "np.ndarray", *, axis: int) -> "np.ndarray":
    """Tokens a second of one client; as many at once as there are, and none ever waits, so all get a multiple of it."""
    import numpy as np

    return np.asarray(tokens.sum(axis=axis) / seconds.sum(axis=axis))


def _reason(throughput: Figure, concurrency: int, requests: int) -> str:
    at = "one request at a time" if concurrency == 1 else f"{concurrency} requests at once"
    change = (
        f"{abs(throughput.value - 1):.0%} (95 % interval of the ratio {throughput.low:.2f} to {throughput.high:.2f})"
    )
    if throughput.low > 1 + _ALIKE:
        return f"With {at}, the quantized model is faster: {change} more tokens a second."
    if throughput.high < 1 - _ALIKE:
        return f"With {at}, the quantized model is slower: {change} fewer tokens a second."
    return (
        f"With {at}, no difference in speed is shown: {throughput.value:.2f} times as many tokens a second (95 % "
        f"interval {throughput.low:.2f} to {throughput.high:.2f}, {requests} requests; two servings of one "
        f"model differ by {_ALIKE:.0%})."
    )
