"""More of the same."""

from launcher.advice import thresholds as at
from launcher.advice.condition import at_least, is_
from launcher.advice.rule import Rule, Technique, Verdict

_REPLICAS = (Technique.REPLICAS,)

RULES = (
    Rule(
        "replicas/throughput-suffices",
        _REPLICAS,
        Verdict.NO,
        (is_("throughput_short", False), is_("ttft_slow", False)),
        "no queue and a TTFT as it should be: more replicas would have less to do each",
        "queueing: what has no queue does not limit throughput",
        "requests that wait",
    ),
    Rule(
        "replicas/memory-first",
        _REPLICAS,
        Verdict.FIRST_MEASURE,
        (is_("memory_short", True), at_least("waiting", at.QUEUE)),
        "requests wait ({waiting}) because memory is short: quantization may do without more devices",
        "cure the cheapest cause first",
    ),
    Rule(
        "replicas/ttft-is-waiting",
        _REPLICAS,
        Verdict.YES,
        (is_("ttft_slow", True), at_least("queue_share", at.MOSTLY_QUEUE)),
        "{queue_share} of TTFT is waiting until an engine begins ({queue_time_p95} of {ttft_p95}, p95)",
        at.MOSTLY_QUEUE.source,
    ),
    Rule(
        "replicas/queue",
        _REPLICAS,
        Verdict.YES,
        (is_("throughput_short", True), at_least("waiting", at.QUEUE)),
        "{waiting} wait in engines on average: more replicas share them",
        "queueing",
    ),
)
