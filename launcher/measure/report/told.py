"""Decision: what the page says, from a measurement."""

from collections.abc import Iterator
from typing import Any

from launcher.measure.bench_shape import Benched
from launcher.measure.report import plots, rows
from launcher.measure.report.amounts import FEW, bounds, milliseconds, percent, rate

_GLOSSARY = {
    "TTFT": "Time to first token: what a user waits until an answer begins. Prefill, queues and KV transfer are in it.",
    "TPOT": "Time per output token after the first: how fast the answer then appears. Short TTFT is often bought with "
    "longer TPOT, and the other way round: never look at one alone.",
    "p50, p99": "Half of the answers, or 99 of 100, took at most so long.",
    "Interval": "The range in which the true value is with 95 % confidence; wider where requests are slow together.",
    "Goodput": "What arrives in time: answers within the objectives, by second.",
    "Closed loop": "Each client waits for its answer before it asks again: a slow server is asked less.",
    "Open loop": "Requests come at their own times, whatever the server does: queues become visible.",
}


def told(benched: Benched) -> dict[str, Any]:
    """Everything that the template shows, in words and plots."""
    figures = benched.figures
    has_answers = figures.ttft.count > 0
    counted = [
        each for each in benched.samples if figures.span.start <= each.sent < figures.span.end and each.error is None
    ]
    return {
        "benched": benched,
        "tone": "fail" if figures.failed else "inconclusive" if benched.notes else "pass",
        "title": "Failures" if figures.failed else "With reservations" if benched.notes else "Measured",
        "asked": rows.asked(benched),
        "cards": list(_cards(benched)),
        "latencies": list(rows.latencies(figures)),
        "too_few": rows.too_few(figures),
        "rates": list(rows.rates(figures)),
        "objectives": rows.objectives(figures.objectives),
        "requests": list(rows.requests(figures)),
        "engines": list(rows.engines(benched.counted)),
        "conditions": list(rows.conditions(benched)),
        "ttft": has_answers
        and plots.distribution(
            "ttft", "TTFT", [each.ttft for each in counted if each.ttft is not None], figures.objectives.ttft
        ),
        "tpot": figures.tpot.count
        and plots.distribution(
            "tpot", "TPOT", [each.tpot for each in counted if each.tpot is not None], figures.objectives.tpot
        ),
        "over_time": has_answers and plots.over_time(benched.samples, figures),
        "glossary": _GLOSSARY,
    }


def _cards(benched: Benched) -> Iterator[dict[str, str]]:
    figures = benched.figures
    for name, of in (("TTFT, median", figures.ttft), ("TPOT, median", figures.tpot)):
        middle, tail = of.percentiles[50], of.percentiles[99]
        yield {
            "name": name,
            "value": milliseconds(middle.value) if middle else FEW,
            "text": f"p99 {milliseconds(tail.value)}" if tail else "too few answers for p99",
            "tone": "",
        }
    yield {
        "name": "Output tokens a second",
        "value": rate(figures.output_rate.value),
        "text": bounds(figures.output_rate, "rate"),
        "tone": "",
    }
    yield {
        "name": "Good requests",
        "value": percent(figures.good_share.value),
        "text": rows.objectives(figures.objectives).removeprefix("good: "),
        "tone": "",
    }
