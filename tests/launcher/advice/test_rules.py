"""Each rule speaks when it should and is silent just beside that."""

import string
from collections import Counter

import pytest

from launcher.advice import thresholds
from launcher.advice.facts import FACTS, Unit
from launcher.advice.judge import advise
from launcher.advice.rule import Rule, Technique, Verdict
from launcher.advice.rules import RULES
from launcher.advice.signs import SIGNS
from launcher.advice.situation import Origin, Situation
from launcher.advice.thresholds import Threshold
from tests.launcher.advice.examples import EXAMPLES, Facts

by_name = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def said(facts: Facts, technique: Technique) -> dict[str, str]:
    """What rules say of a technique, by their names."""
    advice = advise(Situation().plus(facts, Origin.ANSWERED))
    judgement = next(each for each in advice.judgements if each.technique is technique)
    return {reason.rule.name: reason.text for reason in judgement.reasons}


def test_every_rule_has_an_example_for_and_one_against():
    assert [rule.name for rule in RULES] == list(EXAMPLES)


@by_name
def test_a_rule_speaks_about_each_of_its_techniques_and_no_other(rule: Rule):
    for technique in Technique:
        assert (rule.name in said(EXAMPLES[rule.name].speaks, technique)) == (technique in rule.techniques)


@by_name
def test_a_rule_is_silent_just_beside_that(rule: Rule):
    for technique in rule.techniques:
        assert rule.name not in said(EXAMPLES[rule.name].silent, technique)


@by_name
def test_a_rule_is_silent_when_a_fact_is_unknown(rule: Rule):
    for technique in rule.techniques:
        assert rule.name not in said({}, technique)


@by_name
def test_a_reason_has_the_figures_that_it_rests_on(rule: Rule):
    text = said(EXAMPLES[rule.name].speaks, rule.techniques[0])[rule.name]
    assert "unknown" not in text
    situation = Situation().plus(EXAMPLES[rule.name].speaks, Origin.ANSWERED)
    numbers = [each.fact for each in rule.when if FACTS[each.fact].unit not in (None, Unit.NONE)]
    for name in numbers:
        if situation.value(name) is not None:
            assert situation.shown(name) in text


@by_name
def test_a_no_says_what_would_have_to_change_and_nothing_else_does(rule: Rule):
    assert bool(rule.change) == (rule.verdict is Verdict.NO)
    assert rule.source


def test_names_are_there_once():
    assert not [name for name, count in Counter(rule.name for rule in RULES).items() if count > 1]
    assert not [name for name, count in Counter(sign.name for sign in SIGNS).items() if count > 1]


@pytest.mark.parametrize("each", [*RULES, *SIGNS], ids=lambda each: each.name)
def test_a_template_names_only_facts_and_thresholds_of_its_own(each):
    known = {*FACTS, *(when.value.name for when in each.when if isinstance(when.value, Threshold))}
    assert {name for _, name, _, _ in string.Formatter().parse(each.because) if name} <= known
    assert {when.fact for when in each.when} <= set(FACTS)


def test_every_threshold_is_used_and_none_is_named_like_a_fact():
    known = [each for each in vars(thresholds).values() if isinstance(each, Threshold)]
    used = {when.value for each in (*RULES, *SIGNS) for when in each.when if isinstance(when.value, Threshold)}
    assert used == set(known)
    assert not {each.name for each in known} & set(FACTS)
