"""Decision: what to ask next, so that only what can still change the advice is asked."""

from collections.abc import Collection

from launcher.advice.facts import FACTS, FactKind
from launcher.advice.judge import advise, open_facts
from launcher.advice.signs import BOTTLENECKS
from launcher.advice.situation import Situation


def next_question(situation: Situation, declined: Collection[str]) -> FactKind | None:
    """The next fact to ask a person for; ``declined`` are those that were not known."""
    advice = advise(situation)
    if advice.situation.value("anything_short") is False:
        return None
    wanted = {name for name in open_facts(advice) if name not in declined and FACTS[name].question}
    first = (name for name in BOTTLENECKS if advice.situation.value(name) is None and name not in declined)
    return next((FACTS[name] for name in (*first, *(each for each in FACTS if each in wanted))), None)
