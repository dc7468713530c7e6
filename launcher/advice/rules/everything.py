"""When nothing helps."""

from launcher.advice import thresholds as at
from launcher.advice.condition import below, is_
from launcher.advice.rule import Rule, Technique, Verdict

RULES = (
    Rule(
        "everything/nothing-is-short",
        tuple(Technique),
        Verdict.NO,
        (is_("anything_short", False),),
        "memory, TTFT, speed of tokens and throughput are all as they should be: there is nothing to cure",
        "do not accelerate for its own sake",
        "a bottleneck, or stricter objectives (objectives in the profile)",
        of_need=True,
    ),
    Rule(
        "everything/clients-are-the-bottleneck",
        tuple(Technique),
        Verdict.NO,
        (
            is_("throughput_short", True), is_("memory_short", False), is_("ttft_slow", False),
            is_("tokens_slow", False), below("waiting", at.QUEUE), below("batch", at.SOME_LOAD),
        ),
        "the engines are idle: {waiting} wait and an instance works on {batch} at a time, so clients or the network "
        "send too little; faster engines would wait longer",
        "queueing: what has no queue does not limit throughput",
        "more requests at the same time: more clients, or more connections of each",
        of_need=True,
    ),
)  # fmt: skip
