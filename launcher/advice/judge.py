"""Decision: a situation -> advice. The same situation gives the same advice."""

from collections.abc import Iterable, Iterator, Sequence

from launcher.advice.advice import Advice, Judgement, Reason, Undecided
from launcher.advice.condition import facts_of, filled, holds, is_
from launcher.advice.facts import FACTS
from launcher.advice.rule import Rule, Stage, Technique, Verdict
from launcher.advice.rules import RULES
from launcher.advice.signs import derived
from launcher.advice.situation import Situation
from launcher.advice.starts import start_for
from launcher.advice.techniques import ABOUT

_STAGES = (Stage.QUANTIZATION, Stage.SPECULATION, Stage.PD)
# Of several techniques of a stage: the safest that suffices, but where one GPU must hold everything the smallest.
_ORDER = (Technique.FP8, Technique.INT8, Technique.INT4, Technique.DRAFT, Technique.NGRAM, Technique.PD)
_SMALLEST_FIRST = (Technique.INT4, *_ORDER)
_ALL_ON_ONE = (is_("memory_short", True), is_("device", "cuda"), is_("devices", 1.0))
_STEPS = (Verdict.YES, Verdict.FIRST_MEASURE)


def advise(situation: Situation, rules: Sequence[Rule] = RULES) -> Advice:
    """What to do about the bottleneck."""
    situation, findings = derived(situation)
    judgements = tuple(_judged(technique, situation, rules) for technique in Technique)
    next_step, skipped = _next(judgements, situation)
    return Advice(
        situation=situation,
        bottlenecks=findings,
        judgements=judgements,
        next_step=next_step,
        withdraw=tuple(each for each in judgements if each.in_use and each.verdict is Verdict.NO),
        skipped=skipped,
        start=None if next_step is None else start_for(next_step.technique, situation),
        verdict=_on_the_whole(judgements) if next_step is None else next_step.verdict,
    )


def _judged(technique: Technique, situation: Situation, rules: Sequence[Rule]) -> Judgement:
    in_use = any(situation.value(fact) in values for fact, values in ABOUT[technique].in_use.items())
    about = [rule for rule in rules if technique in rule.techniques and not (in_use and rule.of_need)]
    speaking = [_reason(rule, situation) for rule in about if holds(rule.when, situation)]
    open_rules = [_undecided(rule, situation) for rule in about if holds(rule.when, situation) is None]
    said = {reason.rule.verdict for reason in speaking}
    verdict = next((each for each in Verdict if each in said), None)
    if verdict is Verdict.NO:
        open_rules = []
    elif verdict is None:
        verdict = Verdict.CANNOT_SAY if open_rules else Verdict.NO
    else:
        # What already speaks is not overruled by what would say the same.
        open_rules = [each for each in open_rules if each.rule.verdict is not Verdict.YES]
        if verdict is Verdict.YES and open_rules and not in_use:
            verdict = Verdict.FIRST_MEASURE
    return Judgement(
        technique=technique,
        verdict=verdict,
        in_use=in_use,
        reasons=tuple(sorted(speaking, key=lambda reason: [*Verdict].index(reason.rule.verdict))),
        undecided=tuple(open_rules),
    )


def _reason(rule: Rule, situation: Situation) -> Reason:
    facts = {name: situation.facts[name] for name in facts_of(rule.when)}
    return Reason(rule, filled(rule.because, rule.when, situation), facts)


def _undecided(rule: Rule, situation: Situation) -> Undecided:
    return Undecided(rule, tuple(name for name in facts_of(rule.when) if situation.value(name) is None))


def _next(judgements: Iterable[Judgement], situation: Situation) -> tuple[Judgement | None, tuple[Stage, ...]]:
    """The first technique that would help, stage by stage, and the stages before it that could not be judged."""
    order = _SMALLEST_FIRST if holds(_ALL_ON_ONE, situation) else _ORDER
    by_technique = {each.technique: each for each in judgements}
    skipped: list[Stage] = []
    for stage in _STAGES:
        of_stage = [by_technique[each] for each in dict.fromkeys(order) if ABOUT[each].stage is stage]
        if any(each.in_use for each in of_stage):
            continue
        for verdict in _STEPS:
            for each in of_stage:
                if each.verdict is verdict:
                    return each, tuple(skipped)
        if any(each.verdict is Verdict.CANNOT_SAY for each in of_stage):
            skipped.append(stage)
    replicas = by_technique[Technique.REPLICAS]
    return (replicas if replicas.verdict in _STEPS else None), tuple(skipped)


def _on_the_whole(judgements: Iterable[Judgement]) -> Verdict:
    unsure = any(each.verdict is Verdict.CANNOT_SAY for each in judgements)
    return Verdict.CANNOT_SAY if unsure else Verdict.NO


def open_facts(advice: Advice) -> Iterator[str]:
    """The facts that could change a verdict, each once, and that somebody can know."""
    yield from dict.fromkeys(fact for each in advice.judgements for fact in lacking(each, advice.situation))


def lacking(judgement: Judgement, situation: Situation) -> Iterator[str]:
    """The same of one technique: of what a rule lacks the first, or what that is computed from."""
    for undecided in judgement.undecided:
        first = undecided.missing[0]
        yield from (name for name in FACTS[first].computed_from or (first,) if situation.value(name) is None)
