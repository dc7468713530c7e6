"""Decision: what the page says, from an outcome."""

from collections.abc import Mapping
from typing import Any

from launcher.quantize import calibration
from launcher.quantize.gate.shape import Judgement
from launcher.quantize.outcome import Attempt, Outcome
from launcher.quantize.report import cards, figures, plots, rows, words

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
        "cards": list(cards.cards(outcome, last)),
        "scheme": words.SCHEMES.get(outcome.scheme, outcome.scheme),
        "how": words.algorithm(last.algorithm),
        "kept": _kept(last),
        "records": calibration.summary(outcome.calibration) if outcome.calibration else "",
        "warnings": _warnings(outcome),
        "obstacles": _obstacles(judgement) if judgement else [],
        "checks": [rows.check(number, each) for number, each in enumerate(judgement.checks)] if judgement else [],
        "task": judgement and judgement.task and rows.task(judgement.task),
        "sizes": plots.sizes(outcome.baseline_size, last.size),
        "memory": [figures.size(outcome.baseline_size * _MARGIN), figures.size(last.size * _MARGIN)],
        "speeds": list(rows.speeds(last.speed)) if last.speed else [],
        "speed": last.speed and plots.speed(last.speed),
        "sensitivity": outcome.sensitivity and plots.sensitivity(outcome.sensitivity, last.kept),
        "histogram": judgement and judgement.kl_of_records and plots.records(judgement.kl_of_records, _limit(outcome)),
        "guards": sorted(last.guards, key=lambda each: each.is_ok),
        "attempts": [rows.attempt(each) for each in outcome.attempts],
        "limits": _limits(outcome.limits),
        "glossary": words.GLOSSARY,
        "minutes": f"{outcome.seconds / 60:.0f} minutes" if outcome.seconds >= 90 else f"{outcome.seconds:.0f} seconds",
    }


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


def _obstacles(judgement: Judgement) -> list[str]:
    """Reasons that stand above all checks: damage, too few records, an engine that does not repeat itself."""
    told = {each.reason for each in judgement.checks}
    return [reason for reason in judgement.reasons if reason not in told]


def _kept(last: Attempt) -> str:
    if not last.kept:
        return ""
    return (
        f"{len(last.kept)} sensitive units ({last.kept_share:.1%} of the weights) have a finer precision or stay in 16 "
        f"bits, since they would have lost most."
    )


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
