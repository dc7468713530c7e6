"""Whatever is known, there is advice, and it does not contradict itself."""

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from launcher.advice import report, text
from launcher.advice.condition import holds
from launcher.advice.facts import FACTS, FactKind
from launcher.advice.judge import advise
from launcher.advice.report import Seen
from launcher.advice.rule import Stage, Technique, Verdict
from launcher.advice.rules import RULES
from launcher.advice.situation import Origin, Situation
from launcher.advice.techniques import ABOUT
from launcher.advice.thresholds import Threshold

_LIMITS = sorted({when.value.value for rule in RULES for when in rule.when if isinstance(when.value, Threshold)})


def values(kind: FactKind) -> st.SearchStrategy:
    """Any that the fact may have, with those next to thresholds."""
    if kind.words:
        return st.sampled_from(kind.words)
    if kind.unit is None:
        return st.booleans()
    high = min(kind.high, 1e15)
    near = [limit for each in _LIMITS for limit in (each, each * 0.99) if kind.low <= limit <= high]
    numbers = st.floats(kind.low, high, allow_nan=False)
    return st.sampled_from(near) | numbers if near else numbers


situations = st.fixed_dictionaries(
    {}, optional={name: values(kind) for name, kind in FACTS.items() if not kind.computed_from}
).map(lambda facts: Situation().plus(facts, Origin.ANSWERED))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(situations)
def test_advice_is_consistent(situation):
    advice = advise(situation)
    assert advice == advise(situation)
    by_technique = {each.technique: each for each in advice.judgements}
    for judgement in advice.judgements:
        about = [
            rule for rule in RULES if judgement.technique in rule.techniques and not (judgement.in_use and rule.of_need)
        ]
        said = {rule.verdict for rule in about if holds(rule.when, advice.situation)}
        if Verdict.NO in said:
            assert judgement.verdict is Verdict.NO
            assert judgement.change
        if judgement.verdict is Verdict.YES:
            assert said == {Verdict.YES}
            assert judgement.in_use or not judgement.undecided
        if judgement.verdict is Verdict.CANNOT_SAY:
            assert judgement.undecided
        assert (judgement in advice.withdraw) == (judgement.in_use and judgement.verdict is Verdict.NO)
    step = advice.next_step
    if step is not None:
        assert step.verdict in (Verdict.YES, Verdict.FIRST_MEASURE)
        assert not step.in_use
        assert advice.verdict is step.verdict
        assert (advice.start is None) == (ABOUT[step.technique].stage is Stage.MORE)
    for technique, facts in {
        Technique.PD: {"devices": 1.0},
        Technique.FP8: {"device": "cpu"},
        Technique.DRAFT: {"min_p_or_logit_bias": True},
        Technique.NGRAM: {"min_p_or_logit_bias": True},
    }.items():
        for name, value in facts.items():
            if situation.value(name) == value:
                assert by_technique[technique].verdict is Verdict.NO


@settings(max_examples=300, deadline=None, derandomize=True)
@given(situations, st.sampled_from([Seen(), Seen(60.0, 12.0, False, ("a note",)), Seen(60.0, 0.0, True)]))
def test_it_can_be_shown(situation, seen):
    advice = advise(situation)
    document = report.document(advice, seen)
    assert json.loads(json.dumps(document)) == document
    console = Console(width=100, record=True, file=io.StringIO())
    text.show(advice, seen, console)
    shown = console.export_text()
    assert "unknown" not in shown.replace("an unknown number", "")
