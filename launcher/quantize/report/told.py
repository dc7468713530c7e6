"""Decision: what the page says, from an outcome."""

from collections.abc import Iterator, Mapping
from typing import Any

from launcher.quantize import calibration
from launcher.quantize.gate.shape import Check, Judgement, Speed, TaskResult, Verdict
from launcher.quantize.outcome import Attempt, Outcome
from launcher.quantize.report import plots, words

_FREE = ("fp8",)
"""Schemes that are not calibrated."""
_MARGIN = 1.2
"""What a model takes in memory, of what it takes on disk."""


def told(outcome: Outcome) -> dict[str, Any]:
    """Everything that the template shows, in words and plots."""
    last = outcome.attempts[-1]
    judgement = last.judgement
    return {
        "outcome": outcome,
        "last": last,
        "judgement": judgement,
        "title": words.VERDICTS[outcome.verdict],
        "published": _published(outcome),
        "steps": [_step(text) for text in outcome.next_steps],
        "cards": list(_cards(outcome, last)),
        "scheme": words.SCHEMES.get(outcome.scheme, outcome.scheme),
        "how": words.algorithm(last.algorithm),
        "kept": _kept(last),
        "records": calibration.summary(outcome.calibration) if outcome.calibration else "",
        "warnings": _warnings(outcome),
        "obstacles": _obstacles(judgement) if judgement else [],
        "checks": [_check(number, each) for number, each in enumerate(judgement.checks)] if judgement else [],
        "task": judgement and judgement.task and _task(judgement.task),
        "sizes": plots.sizes(outcome.baseline_size, last.size),
        "memory": [size(outcome.baseline_size * _MARGIN), size(last.size * _MARGIN)],
        "speeds": list(_speeds(last.speed)) if last.speed else [],
        "speed": last.speed and plots.speed(last.speed),
        "sensitivity": outcome.sensitivity and plots.sensitivity(outcome.sensitivity, last.kept),
        "histogram": judgement and judgement.kl_of_records and plots.records(judgement.kl_of_records, _limit(outcome)),
        "guards": sorted(last.guards, key=lambda each: each.is_ok),
        "attempts": [_attempt(each) for each in outcome.attempts],
        "limits": _limits(outcome.limits),
        "glossary": words.GLOSSARY,
        "minutes": f"{outcome.seconds / 60:.0f} minutes" if outcome.seconds >= 90 else f"{outcome.seconds:.0f} seconds",
    }


def size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _published(outcome: Outcome) -> str:
    if outcome.forced:
        return f"It was published all the same, as was asked, to {outcome.published}: users may notice the difference."
    if outcome.published:
        return f"The quantized model is in {outcome.published}. The original was not touched."
    return "Nothing was published, and the original was not touched: keep serving it."


def _warnings(outcome: Outcome) -> tuple[str, ...]:
    if not outcome.calibration:
        return ()
    return calibration.warnings(outcome.calibration, needs_data=outcome.scheme not in _FREE)


def _step(text: str) -> dict[str, str]:
    """A command with its comment, or a sentence."""
    if not text.startswith("launcher "):
        return {"command": "", "text": text}
    command, _, comment = text.partition("#")
    return {"command": command.strip(), "text": comment.strip()}


def _cards(outcome: Outcome, last: Attempt) -> Iterator[dict[str, str]]:
    saved = 1 - last.size / outcome.baseline_size
    yield {
        "name": "Size",
        "value": f"{abs(saved):.0%} {'smaller' if saved >= 0 else 'larger'}",
        "text": f"{size(last.size)} in place of {size(outcome.baseline_size)}",
        "tone": "" if saved > 0 else "fail",
    }
    if last.speed:
        gain = last.speed.throughput
        surely = gain.low > 1 or gain.high < 1
        times = f"{abs(gain.value - 1):.0%} {'faster' if gain.value >= 1 else 'slower'}"
        yield {
            "name": "Speed",
            "value": times if surely else "no difference shown",
            "text": f"× {gain.value:.2f} tokens a second ({gain.low:.2f} to {gain.high:.2f}), on {outcome.device}",
            "tone": "fail" if gain.high < 1 else "",
        }
    if last.judgement:
        for each in last.judgement.checks[:1] if not last.judgement.task else ():
            yield {
                "name": each.name[:1].upper() + each.name[1:],
                "value": f"{value(each)} lost" if each.unit == "points" else value(each),
                "text": f"limit {amount(each.limit, each.unit)}",
                "tone": "fail" if each.verdict is Verdict.FAIL else "",
            }
        if (task := last.judgement.task) is not None:
            yield {
                "name": "Your task",
                "value": f"{100 * task.candidate:.1f} % right",
                "text": f"the original: {100 * task.baseline:.1f} %, of {task.items:,} questions",
                "tone": "",
            }
        agreed = next((each for each in last.judgement.checks if each.name == "top-1 agreement"), None)
        if agreed is not None:
            yield {
                "name": "Same next token",
                "value": value(agreed),
                "text": "of the places in your held-out records",
                "tone": "fail" if agreed.verdict is Verdict.FAIL else "",
            }


def amount(number: float, unit: str) -> str:
    """A figure with its unit."""
    if unit == "share":
        return f"{100 * number:.1f} %"
    return f"{number:.2f} points" if unit == "points" else f"{number:.3f} {unit}"


def value(check: Check) -> str:
    """What was measured."""
    return amount(check.figure.value, check.unit)


def _obstacles(judgement: Judgement) -> list[str]:
    """Reasons that stand above all checks: damage, too few records, an engine that does not repeat itself."""
    told = {each.reason for each in judgement.checks}
    return [reason for reason in judgement.reasons if reason not in told]


def _check(number: int, each: Check) -> dict[str, Any]:
    return {
        "name": each.name,
        "verdict": each.verdict.value,
        "title": words.VERDICTS[each.verdict],
        "means": words.CHECKS.get(each.name, ""),
        "value": value(each),
        "interval": f"{amount(each.figure.low, each.unit)} to {amount(each.figure.high, each.unit)}",
        "limit": amount(each.limit, each.unit),
        "reason": each.reason,
        "plot": plots.check(number, each),
    }


def _task(task: TaskResult) -> list[tuple[str, str]]:
    rows = [
        ("Questions", f"{task.items:,}"),
        ("Right, original", f"{100 * task.baseline:.1f} %"),
        ("Right, quantized", f"{100 * task.candidate:.1f} %"),
        ("Right only by the original", f"{task.worse:,}"),
        ("Right only by the quantized one", f"{task.better:,}"),
    ]
    return [*rows, ("Questions needed to decide", f"about {task.needed:,}")] if task.needed > task.items else rows


def _speeds(measured: Speed) -> Iterator[dict[str, str]]:
    """Of each way it was measured."""
    for told in filter(None, (measured, measured.alone)):
        yield {
            "load": f"{told.concurrency} at once" if told.concurrency > 1 else "one at a time",
            "requests": f"{told.requests}",
            "ttft": f"{told.baseline_ttft * 1000:,.0f} ms",
            "tpot": f"{told.baseline_tpot * 1000:,.1f} ms",
            "throughput": f"{told.baseline_throughput:,.0f} tokens/s",
            "ttft_ratio": _ratio(told.ttft.value, told.ttft.low, told.ttft.high),
            "tpot_ratio": _ratio(told.tpot.value, told.tpot.low, told.tpot.high),
            "throughput_ratio": _ratio(told.throughput.value, told.throughput.low, told.throughput.high),
            "reason": told.reason,
        }


def _ratio(middle: float, low: float, high: float) -> str:
    return f"× {middle:.2f} ({low:.2f} to {high:.2f})"


def _kept(last: Attempt) -> str:
    if not last.kept:
        return ""
    return (
        f"{len(last.kept)} sensitive units ({last.kept_share:.1%} of the weights) have a finer precision or stay in 16 "
        f"bits, since they would have lost most."
    )


def _attempt(each: Attempt) -> dict[str, Any]:
    checks = {check.name: value(check) for check in each.judgement.checks} if each.judgement else {}
    refused = next((guard.name for guard in each.guards if not guard.is_ok), "")
    verdict = each.judgement.verdict if each.judgement else Verdict.FAIL
    return {
        "number": each.number,
        "algorithm": each.algorithm,
        "kept": f"{len(each.kept)} ({each.kept_share:.1%})" if each.kept else "none",
        "size": size(each.size),
        "minutes": f"{each.seconds / 60:.1f}",
        "kl": checks.get("token KL", "–"),
        "agreement": checks.get("top-1 agreement", "–"),
        "verdict": verdict.value,
        "title": words.VERDICTS[verdict] if each.judgement else f"Refused: {refused}",
    }


def _limit(outcome: Outcome) -> float:
    return float(outcome.limits.get("kl", 0.1))


def _limits(limits: Mapping[str, float]) -> str:
    told = {
        "loss": "at most {:g} points of accuracy lost",
        "kl": "at most {:g} nats of KL divergence",
        "agreement": "at least {:.0%} of next tokens the same",
        "confidence": "each with {:.0%} confidence",
    }
    return ", ".join(text.format(limits[name]) for name, text in told.items() if name in limits)
