"""Decision: rows of the page's tables."""

from collections.abc import Iterator
from typing import Any

from launcher.quantize.gate.shape import Check, Speed, TaskResult, Verdict
from launcher.quantize.outcome import Attempt
from launcher.quantize.report import plots, words
from launcher.quantize.report.figures import amount, size, times, value


def check(number: int, each: Check) -> dict[str, Any]:
    """With its plot."""
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


def task(task: TaskResult) -> list[tuple[str, str]]:
    """Names and counts."""
    rows = [
        ("Questions", f"{task.items:,}"),
        ("Right, original", f"{100 * task.baseline:.1f} %"),
        ("Right, quantized", f"{100 * task.candidate:.1f} %"),
        ("Right only by the original", f"{task.worse:,}"),
        ("Right only by the quantized one", f"{task.better:,}"),
    ]
    return [*rows, ("Questions needed to decide", f"about {task.needed:,}")] if task.needed > task.items else rows


def speeds(measured: Speed) -> Iterator[dict[str, str]]:
    """Of each way it was measured."""
    for told in filter(None, (measured, measured.alone)):
        yield {
            "load": f"{told.concurrency} at once" if told.concurrency > 1 else "one at a time",
            "requests": f"{told.requests}",
            "ttft": f"{told.baseline_ttft * 1000:,.0f} ms",
            "tpot": f"{told.baseline_tpot * 1000:,.1f} ms",
            "throughput": f"{told.baseline_throughput:,.0f} tokens/s",
            "ttft_ratio": times(told.ttft),
            "tpot_ratio": times(told.tpot),
            "throughput_ratio": times(told.throughput),
            "reason": told.reason,
        }


def attempt(each: Attempt) -> dict[str, Any]:
    """With its decisive figures."""
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
