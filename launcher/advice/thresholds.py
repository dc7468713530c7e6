"""Every threshold of the advice, with where it is known from."""

from dataclasses import dataclass

OWN = "own judgement, between published points; measure"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that a rule compares a fact with, in the fact's unit."""

    name: str
    value: float
    source: str


CACHE_FULL = Threshold("cache_full", 0.95, OWN)
PREEMPTED = Threshold("preempted", 0.01, OWN)
QUEUE = Threshold("queue", 1.0, "one request that always waits: engines are never without work")
OVER = Threshold("over", 1.0, "the profile's objectives; for TTFT else the default alert, 500 ms")
SPREAD_MUCH = Threshold("spread_much", 5.0, OWN)
SPREAD_LITTLE = Threshold("spread_little", 2.0, OWN)

MOSTLY_QUEUE = Threshold("mostly_queue", 0.5, OWN)

FP8_CAPABILITY = Threshold("fp8_capability", 8.9, "vLLM's documentation: native FP8 on Ada, Hopper and Blackwell")
INT8_CAPABILITY = Threshold("int8_capability", 7.5, "vLLM's documentation: INT8 from Turing on")
BLACKWELL = Threshold("blackwell", 10.0, "vLLM's documentation: no INT8 kernels from compute capability 10.0 on")
LARGE_MODEL = Threshold(
    "large_model", 13.0, "rule of thumb: models of 13B and more lose more at INT4, most in exact work"
)

ACCEPTANCE = Threshold("acceptance_needed", 0.5, "rule of thumb: below half, drafts cost more than they save")
HIGH_LOAD = Threshold(
    "high_load",
    32.0,
    "measured in vLLM's work on dynamic speculation: -16 % at batch 32 while acceptance stayed 0.86-0.91",
)
SOME_LOAD = Threshold("some_load", 8.0, OWN)
HOT = Threshold("hot", 1.0, "rule of thumb: a high temperature lowers acceptance; the figure is " + OWN)
SHORT_ANSWER = Threshold("short_answer", 16.0, OWN)

PD_CONCURRENCY = Threshold("pd_concurrency", 50.0, "rule of thumb: PD pays off above about 50 concurrent requests")
SHORT_PROMPT = Threshold("short_prompt", 256.0, "vllm-router skips PD for prompts of up to 256 uncached tokens")
LONG_PROMPT = Threshold("long_prompt", 2048.0, "Dynamo's default: prompts of fewer uncached tokens stay on decode")
MOSTLY_CACHED = Threshold(
    "mostly_cached", 0.7, "the ratio in Dynamo's conditional disaggregation; as the cached share, " + OWN
)
TRANSFER_EATS_ALL = Threshold("transfer_eats_all", 1.0, "arithmetic: moving the KV takes as long as computing it")
TRANSFER_COSTS = Threshold("transfer_costs", 0.25, OWN)
SLOW_TRANSFER = Threshold("slow_transfer", 0.05, "default alert: KV transfer above 50 ms")
MOSTLY_PD = Threshold("mostly_pd", 0.5, OWN)
ONE_DEVICE = Threshold("one_device", 2.0, "arithmetic: prefill and decode need a device each")

TTFT_OBJECTIVE = 0.5
"""Seconds: the default alert, where the profile has no objective."""
