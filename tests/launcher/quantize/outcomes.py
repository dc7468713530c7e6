"""Outcomes as they come: passed, failed, undecided, refused by a guard, published all the same."""

from dataclasses import replace

from launcher.quantize.gate.shape import Check, Figure, Judgement, Speed, TaskResult, Verdict
from launcher.quantize.outcome import Attempt, Guard, Outcome, UnitScore
from tests.launcher.quantize.test_calibration import FACTS

_GUARDS = (
    Guard("coverage", True, "210 of 210 layers were quantized as planned"),
    Guard("scales", True, "all scales are finite and above 0"),
    Guard("size", True, "0.58 of the 16-bit size, 0.57 were expected"),
)
_UNITS = tuple(
    UnitScore(f"model.layers.{28 - at}.{kind}", 700_000, 0.02 / (at + 1), 0.018 / (at + 1) if at < 6 else None)
    for at in range(24)
    for kind in ("mlp.down_proj", "mlp.gate_up_proj")[at % 2 : at % 2 + 1]
)


def _checks(kl: float, agreement: float, loss: float, *verdicts: Verdict) -> tuple[Check, ...]:
    return (
        Check(
            "next-token accuracy",
            Figure(loss, loss - 0.42, loss + 0.42),
            1.0,
            "points",
            verdicts[0],
            f"It guesses the real next token {loss:.2f} points less often than the original; with 95 % "
            f"confidence the loss is below {loss + 0.42:.2f} points (limit 1).",
        ),
        Check(
            "token KL",
            Figure(kl, kl * 0.94, kl * 1.06),
            0.1,
            "nats",
            verdicts[1],
            f"The probabilities of the next token differ by {kl:.3f} nats on average.",
        ),
        Check(
            "top-1 agreement",
            Figure(agreement, agreement - 0.011, agreement + 0.010),
            0.85,
            "share",
            verdicts[2],
            f"Both models would say the same token next at {agreement:.1%} of the places.",
        ),
    )


def _judgement(verdict: Verdict, kl: float, agreement: float, loss: float, *verdicts: Verdict) -> Judgement:
    checks = _checks(kl, agreement, loss, *(verdicts or (verdict,) * 3))
    spread = tuple(kl * (0.4 + 0.02 * (37 * number % 64)) for number in range(64))
    return Judgement(
        verdict=verdict,
        reasons=tuple(each.reason for each in checks),
        is_proxy=True,
        checks=checks,
        records=64,
        positions=8963,
        noise=0.0,
        nll_change=Figure(-0.0002, -0.005, 0.005),
        kl_of_records=spread,
    )


_ALONE = Speed(
    Figure(0.71, 0.66, 0.77),
    Figure(0.83, 0.80, 0.86),
    Figure(1.19, 1.14, 1.24),
    0.21,
    0.031,
    31.0,
    1,
    20,
    "Faster: 1.19 times.",
)
_SPEED = Speed(
    Figure(0.64, 0.58, 0.70),
    Figure(0.80, 0.75, 0.86),
    Figure(1.26, 1.18, 1.35),
    0.412,
    0.0462,
    118.0,
    4,
    64,
    "Faster: 1.26 times as many tokens a second (1.18 to 1.35).",
    _ALONE,
)
_SLOWER = Speed(
    Figure(1.40, 1.31, 1.52),
    Figure(1.22, 1.15, 1.30),
    Figure(0.81, 0.76, 0.87),
    0.412,
    0.0462,
    118.0,
    4,
    64,
    "Slower: 0.81 times as many tokens a second (0.76 to 0.87). This engine has no fast kernel for it on this device.",
)

_RTN = Attempt(
    1,
    "round to nearest",
    {"scheme": "int8"},
    (),
    0.0,
    156_000_000,
    41.0,
    _GUARDS,
    _judgement(Verdict.FAIL, 0.131, 0.83, 1.9),
)
_SMOOTH = Attempt(
    number=2,
    algorithm="SmoothQuant + GPTQ",
    recipe={"scheme": "int8", "smoothing": 0.8},
    kept=(),
    kept_share=0.0,
    size=156_300_000,
    seconds=412.0,
    guards=_GUARDS,
    judgement=_judgement(Verdict.PASS, 0.0276, 0.905, 0.12),
    speed=_SPEED,
)

PASSED = Outcome(
    verdict=Verdict.PASS,
    headline="INT8 by SmoothQuant + GPTQ passes: as good as the original within the limits, and 42% smaller.",
    model="smollm2-135m-instruct",
    scheme="int8",
    choice="INT8 is for CPUs and for GPUs from Turing to Hopper; this machine has a CPU.",
    target="CPU",
    device="cpu",
    seed=0,
    command="launcher quantize run smollm2-135m-instruct --scheme int8 --calibration day.jsonl --out models/small-int8",
    versions={
        "duet": "0.1.0",
        "vllm": "0.32.0",
        "llmcompressor": "0.14.0.1",
        "torch": "2.14.0",
        "transformers": "5.17.0",
    },
    started="2026-11-30T13:00:00+00:00",
    seconds=1240.0,
    baseline_size=269_000_000,
    calibration={**FACTS, "used": 400, "secrets": {"e-mail address": 12}},
    limits={"loss": 1.0, "kl": 0.1, "agreement": 0.85, "floor": 0.1, "confidence": 0.95, "records": 32},
    attempts=(_RTN, _SMOOTH),
    published="models/small-int8",
    digests={"model": "8c6dcd2e9b0c7d3f", "calibration": "51b6e2f0a9d8171f", "checkpoint": "77aa01c6dcd2e9b0"},
    next_steps=(
        "launcher check PROFILE --model models/small-int8",
        "launcher up PROFILE --model models/small-int8",
        "launcher quantize check models/small-int8 --live recent.jsonl   # weekly: still like production?",
    ),
)
WITH_TASK = replace(
    PASSED,
    attempts=(
        replace(
            _SMOOTH,
            judgement=replace(
                _SMOOTH.judgement or _judgement(Verdict.PASS, 0.03, 0.9, 0.1),
                is_proxy=False,
                reasons=(),
                checks=(
                    Check(
                        "task accuracy",
                        Figure(0.2, -0.5, 0.9),
                        1.0,
                        "points",
                        Verdict.PASS,
                        "Of 2,400 questions 0.2 points are lost.",
                    ),
                    *_checks(0.0276, 0.905, 0.12, *(Verdict.PASS,) * 3)[1:],
                ),
                task=TaskResult(2400, 0.684, 0.682, 41, 36, 1980),
            ),
        ),
    ),
)
FAILED = replace(
    PASSED,
    verdict=Verdict.FAIL,
    headline="INT4 by GPTQ fails after 3 attempts: it guesses the real next token 5.10 points less often.",
    scheme="int4",
    choice="INT4 is for memory: the weights are a quarter, the arithmetic stays 16-bit.",
    attempts=(
        replace(_RTN, algorithm="AWQ", size=109_000_000, judgement=_judgement(Verdict.FAIL, 0.196, 0.784, 3.1)),
        replace(
            _RTN, number=2, algorithm="GPTQ", size=108_000_000, judgement=_judgement(Verdict.FAIL, 0.259, 0.734, 5.4)
        ),
        replace(
            _RTN,
            number=3,
            algorithm="GPTQ",
            size=123_000_000,
            seconds=830.0,
            kept=tuple(each.name for each in _UNITS[:4]),
            kept_share=0.101,
            judgement=_judgement(Verdict.FAIL, 0.228, 0.745, 5.1),
            speed=_SLOWER,
        ),
    ),
    sensitivity=_UNITS,
    published=None,
    next_steps=(
        "Use --scheme int8 (fp8 on Ada, Hopper, Blackwell): four bits are too few for this model.",
        "The most sensitive layer is model.layers.28.mlp.down_proj: allow more attempts (--attempts 4).",
        "Serve the original: no quantization is better than one that harms.",
    ),
)
UNDECIDED = replace(
    PASSED,
    verdict=Verdict.INCONCLUSIVE,
    headline="INT8 by SmoothQuant + GPTQ: not shown to be as good as the original, nor to be worse.",
    attempts=(
        replace(
            _SMOOTH,
            number=1,
            judgement=_judgement(
                Verdict.INCONCLUSIVE, 0.0276, 0.905, 0.82, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.PASS
            ),
        ),
    ),
    published=None,
    next_steps=("Give a labelled task of yours (--task items.jsonl), or more records to hold out (--held-out).",),
)
REFUSED = replace(
    PASSED,
    verdict=Verdict.FAIL,
    headline="INT8 by GPTQ was not judged: scales: 3 of 210 layers have scales that are no numbers.",
    attempts=(
        replace(
            _SMOOTH,
            number=1,
            guards=(
                *_GUARDS[:1],
                Guard(
                    "scales",
                    False,
                    "3 of 210 layers have scales that are no numbers",
                ),
            ),
            judgement=None,
            speed=None,
        ),
    ),
    published=None,
    next_steps=("Do what the guard that failed says, and run the same command again: finished steps are kept.",),
)
FORCED = replace(UNDECIDED, published="models/small-int8", forced=True)
ALL = {
    "passed": PASSED,
    "with-task": WITH_TASK,
    "failed": FAILED,
    "undecided": UNDECIDED,
    "refused": REFUSED,
    "forced": FORCED,
}
