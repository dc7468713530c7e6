"""Decision: advice as a JSON document, with keys that stay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from launcher.advice.advice import Advice, Judgement
from launcher.advice.facts import FACTS
from launcher.advice.judge import open_facts
from launcher.advice.rule import Gain
from launcher.advice.situation import Fact
from launcher.advice.starts import commands
from launcher.advice.techniques import ABOUT

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Seen:
    """Where the facts come from, besides answers."""

    window: float | None = None
    """Seconds; ``None`` when nothing was measured."""
    requests: float | None = None
    nothing_to_judge: bool = False
    """Nobody sent anything while it was watched."""
    notes: Sequence[str] = ()


def document(advice: Advice, seen: Seen) -> Document:
    """All of it. Facts are in their units, seconds and bytes; times that are quantiles are estimates."""
    return {
        "verdict": "nothing-to-judge" if seen.nothing_to_judge else advice.verdict.value,
        "window_seconds": seen.window,
        "bottlenecks": [
            {
                "name": each.fact,
                "there": each.there,
                "origin": each.origin and each.origin.value,
                "because": each.because,
                "measured_against_it": each.against,
            }
            for each in advice.bottlenecks
        ],
        "techniques": [_technique(each) for each in advice.judgements],
        "next": None if advice.next_step is None else _next(advice.next_step),
        "withdraw": [each.technique.value for each in advice.withdraw],
        "stages_not_judged": [stage.value for stage in advice.skipped],
        "start_from": None
        if advice.start is None
        else {
            "profile": advice.start.profile,
            "set": list(advice.start.overrides),
            "because": advice.start.because,
            "commands": list(commands(advice.start)),
        },
        "not_known": [*open_facts(advice)],
        "facts": _facts(advice.situation.facts),
        "notes": list(seen.notes),
    }


def _next(judgement: Judgement) -> Document:
    return {
        "stage": ABOUT[judgement.technique].stage.value,
        "technique": judgement.technique.value,
        "verdict": judgement.verdict.value,
        "in_a_profile": ABOUT[judgement.technique].keys,
    }


def _technique(judgement: Judgement) -> Document:
    about = ABOUT[judgement.technique]
    return {
        "name": judgement.technique.value,
        "title": about.title,
        "stage": about.stage.value,
        "verdict": judgement.verdict.value,
        "in_use": judgement.in_use,
        "reasons": [
            {
                "rule": reason.rule.name,
                "verdict": reason.rule.verdict.value,
                "text": reason.text,
                "source": reason.rule.source,
                "facts": _facts(reason.facts),
            }
            for reason in judgement.reasons
        ],
        "would_have_to_change": list(judgement.change),
        "not_decided": [{"rule": each.rule.name, "missing": list(each.missing)} for each in judgement.undecided],
        "expected": [_gain(each) for each in about.gains],
        "costs": list(about.costs),
    }


def _gain(gain: Gain) -> Document:
    return {
        "metric": gain.metric,
        "low": gain.low,
        "high": gain.high,
        "unit": gain.unit,
        "source": gain.source,
        "measure": gain.measure,
    }


def _facts(facts: Mapping[str, Fact]) -> Document:
    return {name: _fact(name, facts[name]) for name in _in_order(facts)}


def _fact(name: str, fact: Fact) -> Document:
    unit = FACTS[name].unit
    return {"value": fact.value, "unit": None if unit is None else unit.value, "origin": fact.origin.value}


def _in_order(names: Iterable[str]) -> list[str]:
    known = set(names)
    return [name for name in FACTS if name in known]
