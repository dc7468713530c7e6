"""Decision: the few figures that stand first."""

from collections.abc import Iterator

from launcher.quantize.gate.shape import Verdict
from launcher.quantize.outcome import Attempt, Outcome
from launcher.quantize.report.figures import amount, size, value


def cards(outcome: Outcome, last: Attempt) -> Iterator[dict[str, str]]:
    """Name, value and text; ``tone`` is a verdict where it is a bad one."""
    saved = 1 - last.size / outcome.baseline_size
    yield {
        "name": "Size",
        "value": f"{abs(saved):.0%} {'smaller' if saved >= 0 else 'larger'}",
        "text": f"{size(last.size)} in place of {size(outcome.baseline_size)}",
        "tone": "" if saved > 0 else "fail",
    }
    if last.speed:
        gain = last.speed.throughput
        surely = not last.speed.is_disturbed and (gain.low > 1 or gain.high < 1)
        unsure = "not known" if last.speed.is_disturbed else "no difference shown"
        times = f"{abs(gain.value - 1):.0%} {'faster' if gain.value >= 1 else 'slower'}"
        yield {
            "name": "Speed",
            "value": times if surely else unsure,
            "text": "something else used this machine meanwhile"
            if last.speed.is_disturbed
            else f"× {gain.value:.2f} tokens a second ({gain.low:.2f} to {gain.high:.2f}), on {outcome.device}",
            "tone": "fail" if surely and gain.high < 1 else "",
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
