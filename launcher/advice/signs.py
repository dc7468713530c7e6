"""Decision: what facts say of the bottlenecks, and what else follows from them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.advice import thresholds as at
from launcher.advice.condition import Condition, at_least, below, filled, holds
from launcher.advice.facts import Value
from launcher.advice.situation import Origin, Situation


@dataclass(frozen=True, slots=True)
class Sign:
    """Says of a bottleneck that it is there, or is not, when all its conditions hold."""

    name: str
    fact: str
    """The bottleneck: one of :data:`BOTTLENECKS`."""
    there: bool
    when: tuple[Condition, ...]
    because: str
    """With the facts of its conditions in braces."""


BOTTLENECKS = ("memory_short", "ttft_slow", "tokens_slow", "throughput_short")
"""In the order in which they are cured: what lacks memory is slow for that reason."""

_ROOM = (below("kv_cache_usage", at.CACHE_FULL), below("preempted_share", at.PREEMPTED))

# Of those of one fact the first that holds decides.
SIGNS = (
    Sign("memory/preemptions", "memory_short", True, (at_least("preempted_share", at.PREEMPTED),),
         "engines threw KV away to make room: {preempted_share} preemptions per request (usual: below {preempted})"),
    Sign("memory/cache-full", "memory_short", True,
         (at_least("kv_cache_usage", at.CACHE_FULL), at_least("waiting", at.QUEUE)),
         "a KV cache was {kv_cache_usage} full while {waiting} waited"),
    Sign("memory/room-left", "memory_short", False, _ROOM,
         "no KV cache was more than {kv_cache_usage} full, with {preempted_share} preemptions per request"),
    Sign("memory/full-but-nobody-waits", "memory_short", False,
         (at_least("kv_cache_usage", at.CACHE_FULL), below("waiting", at.QUEUE)),
         "a KV cache was {kv_cache_usage} full, but hardly anything waited ({waiting})"),
    Sign("ttft/above-objective", "ttft_slow", True, (at_least("ttft_over", at.OVER),),
         "TTFT p95 is {ttft_p95}, more than the {ttft_objective} that it should be"),
    Sign("ttft/within-objective", "ttft_slow", False, (below("ttft_over", at.OVER),),
         "TTFT p95 is {ttft_p95}, within {ttft_objective}"),
    Sign("tokens/above-objective", "tokens_slow", True, (at_least("tpot_over", at.OVER),),
         "a token takes {tpot_p95} (p95), more than the {tpot_objective} that it should"),
    Sign("tokens/stalls", "tokens_slow", True, (at_least("itl_spread", at.SPREAD_MUCH),),
         "streams stall: the time between two events is {itl_p99} at p99, {itl_p50} in the median"),
    Sign("tokens/within-objective", "tokens_slow", False, (below("tpot_over", at.OVER),),
         "a token takes {tpot_p95} (p95), within {tpot_objective}"),
    Sign("throughput/queue", "throughput_short", True, (at_least("waiting", at.QUEUE),),
         "{waiting} waited in engines on average"),
    Sign("throughput/no-queue", "throughput_short", False, (below("waiting", at.QUEUE),),
         "hardly anything waited in engines ({waiting})"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one bottleneck."""

    fact: str
    there: bool | None
    """``None``: cannot be told."""
    origin: Origin | None
    because: str
    """Which figures say so."""
    against: str = ""
    """What was measured to the contrary, of an answer."""


def derived(situation: Situation) -> tuple[Situation, tuple[Finding, ...]]:
    """The situation with all that follows from it, and what is known of each bottleneck."""
    situation = situation.plus(_ratios(situation), Origin.DERIVED)
    findings = tuple(_finding(fact, situation) for fact in BOTTLENECKS)
    measured = {each.fact: each.there for each in findings if each.origin is Origin.MEASURED}
    situation = situation.plus(measured, Origin.MEASURED)
    return situation.plus(_conclusions(situation), Origin.DERIVED), findings


def _finding(fact: str, situation: Situation) -> Finding:
    sign = next((each for each in SIGNS if each.fact == fact and holds(each.when, situation)), None)
    because = "" if sign is None else filled(sign.because, sign.when, situation)
    answered = situation.value(fact)
    if answered is None:
        there, origin = (None, None) if sign is None else (sign.there, Origin.MEASURED)
        return Finding(fact, there, origin, because)
    if sign is None or sign.there is answered:
        return Finding(fact, bool(answered), Origin.ANSWERED, because)
    return Finding(fact, bool(answered), Origin.ANSWERED, "", because)


def _ratios(situation: Situation) -> Mapping[str, Value | None]:
    """Facts over facts."""
    number = situation.number
    moved = _product(number("prompt_tokens_p50"), number("kv_bytes_per_token"))
    interconnect = number("interconnect")
    transfer = _over(moved, None if interconnect is None else interconnect * 1e9)
    measured = number("kv_transfer_time_p50")
    return {
        "ttft_over": _over(number("ttft_p95"), number("ttft_objective")),
        "queue_share": _over(number("queue_time_p95"), number("ttft_p95")),
        "tpot_over": _over(number("tpot_p95"), number("tpot_objective")),
        "itl_spread": _over(number("itl_p99"), number("itl_p50")),
        "transfer_share": _over(transfer if measured is None else measured, number("prefill_time_p50")),
        "batch": _batch(number("concurrency"), number("devices")),
    }


def _batch(concurrency: float | None, devices: float | None) -> float | None:
    """What one instance has at most; known where nobody shares it, or where it is little anyway."""
    if concurrency is None or (concurrency >= at.SOME_LOAD.value and devices != 1):
        return None
    return concurrency


def _conclusions(situation: Situation) -> Mapping[str, Value | None]:
    found = [situation.value(fact) for fact in BOTTLENECKS]
    anything = True if True in found else None if None in found else False
    # What a draft takes is taken from the KV cache.
    return {"anything_short": anything, "draft_fits": False if situation.value("memory_short") else None}


def _product(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


def _over(one: float | None, other: float | None) -> float | None:
    ratio = math.inf if one is None or not other else one / other
    return ratio if math.isfinite(ratio) else None
