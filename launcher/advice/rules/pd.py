"""Prefill and decode on devices of their own."""

from launcher.advice import thresholds as at
from launcher.advice.condition import at_least, below, is_
from launcher.advice.rule import Rule, Technique, Verdict

_PD = (Technique.PD,)
_DOCUMENTATION = "vLLM's documentation: it bounds the tail of ITL and does not improve throughput"

RULES = (
    Rule(
        "pd/one-device",
        _PD,
        Verdict.NO,
        (below("devices", at.ONE_DEVICE),),
        "with {devices} prefill and decode would share what they are to be kept apart on",
        at.ONE_DEVICE.source,
        "two devices or more",
    ),
    Rule(
        "pd/low-concurrency",
        _PD,
        Verdict.NO,
        (below("concurrency", at.PD_CONCURRENCY),),
        "with {concurrency} at the same time prompts and answers seldom meet; PD pays off from about "
        "{pd_concurrency}, below that it costs latency",
        at.PD_CONCURRENCY.source,
        "more requests at the same time; where PD stays, proxy.pd lets decode serve alone what gains nothing",
    ),
    Rule(
        "pd/short-prompts",
        _PD,
        Verdict.NO,
        (below("prompt_tokens_p95", at.SHORT_PROMPT),),
        "95 % of prompts have at most {prompt_tokens_p95}: they hold nobody up (fewer than {short_prompt})",
        at.SHORT_PROMPT.source,
        "longer prompts",
    ),
    Rule(
        "pd/short-answers",
        _PD,
        Verdict.NO,
        (below("output_tokens_p95", at.SHORT_ANSWER),),
        "95 % of answers have at most {output_tokens_p95}: there is no decoding to protect (fewer than {short_answer})",
        at.SHORT_ANSWER.source,
        "longer answers",
    ),
    Rule(
        "pd/mostly-cached",
        _PD,
        Verdict.NO,
        (at_least("prefix_hit_rate", at.MOSTLY_CACHED),),
        "{prefix_hit_rate} of the prompts' tokens are cached already ({mostly_cached} and more): little is left to "
        "compute elsewhere; prefix-aware routing brings more",
        at.MOSTLY_CACHED.source + "; an agentic trace: TTFT +72 %, TPOT unchanged",
        "prompts that differ",
    ),
    Rule(
        "pd/transfer-eats-the-gain",
        _PD,
        Verdict.NO,
        (at_least("transfer_share", at.TRANSFER_EATS_ALL),),
        "moving a prompt's KV takes {transfer_share} of the time to compute it ({prefill_time_p50} in the median): "
        "computing it where it is needed is faster",
        at.TRANSFER_EATS_ALL.source,
        "a faster interconnect (NVLink, RDMA), or a KV cache of 8 bits",
    ),
    Rule(
        "pd/nobody-watches",
        _PD,
        Verdict.NO,
        (is_("monitoring", False),),
        "nobody watches the metrics: a transfer that fails would be noticed by users first",
        "monitoring matters more than optimisation",
        "metrics and alerts; `/metrics` of proxy and engines have them",
    ),
    Rule(
        "pd/no-stalls",
        _PD,
        Verdict.NO,
        (is_("pd", False), below("itl_spread", at.SPREAD_LITTLE)),
        "prompts do not disturb streams: between two events pass {itl_p99} at p99, {itl_p50} in the median "
        "(less than {spread_little} times)",
        _DOCUMENTATION,
        "streams that stall while prompts are computed",
        of_need=True,
    ),
    Rule(
        "pd/only-memory",
        _PD,
        Verdict.NO,
        (
            is_("memory_short", True), is_("ttft_slow", False), is_("tokens_slow", False),
            is_("throughput_short", False),
        ),
        "only memory is short, and PD holds the weights twice",
        "arithmetic",
        "stalls in the streams",
        of_need=True,
    ),
    Rule(
        "pd/middling-prompts",
        _PD,
        Verdict.FIRST_MEASURE,
        (at_least("prompt_tokens_p95", at.SHORT_PROMPT), below("prompt_tokens_p95", at.LONG_PROMPT)),
        "prompts of up to {prompt_tokens_p95} are neither short nor long ({long_prompt} and more)",
        at.LONG_PROMPT.source,
        of_need=True,
    ),
    Rule(
        "pd/transfer-costs",
        _PD,
        Verdict.FIRST_MEASURE,
        (at_least("transfer_share", at.TRANSFER_COSTS), below("transfer_share", at.TRANSFER_EATS_ALL)),
        "moving a prompt's KV takes {transfer_share} of the time to compute it ({transfer_costs} and more)",
        at.TRANSFER_COSTS.source,
    ),
    Rule(
        "pd/no-rdma",
        _PD,
        Verdict.FIRST_MEASURE,
        (is_("rdma", False), at_least("prompt_tokens_p95", at.LONG_PROMPT)),
        "prompts of {prompt_tokens_p95} without NVLink or RDMA: 2,048 tokens of a 70B model are 0.6 to 1 GB of KV",
        "KV transfer is the risk of PD",
        of_need=True,
    ),
    Rule(
        "pd/no-kubernetes",
        _PD,
        Verdict.FIRST_MEASURE,
        (is_("kubernetes", False),),
        "two pools that scale apart want practice in operating such things; begin on one machine",
        "rule of thumb: no Kubernetes and monitoring practice, no PD yet",
        of_need=True,
    ),
    Rule(
        "pd/for-ttft",
        _PD,
        Verdict.FIRST_MEASURE,
        (is_("ttft_slow", True), is_("tokens_slow", False)),
        "TTFT is what is too long, and PD often lengthens it: the hand-over comes on top (measured +117 % and +72 %, "
        "claimed -40 %)",
        "llm-d's PD guide, an agentic trace",
        of_need=True,
    ),
    Rule(
        "pd/for-throughput",
        _PD,
        Verdict.FIRST_MEASURE,
        (is_("throughput_short", True), is_("tokens_slow", False)),
        "throughput is what is short, and PD often brings none (0.74 to 1.67 times per device, predicted)",
        _DOCUMENTATION,
        of_need=True,
    ),
    Rule(
        "pd/hardly-used",
        _PD,
        Verdict.FIRST_MEASURE,
        (is_("pd", True), below("pd_share", at.MOSTLY_PD)),
        "it is configured, but only {pd_share} of requests took it: `launcher prove` and "
        "duet_pd_bypassed_total say why",
        at.MOSTLY_PD.source,
    ),
    Rule(
        "pd/slow-transfers",
        _PD,
        Verdict.FIRST_MEASURE,
        (is_("pd", True), at_least("kv_transfer_time_p95", at.SLOW_TRANSFER)),
        "KV transfers take {kv_transfer_time_p95} (p95), {slow_transfer} or more: look at the network first",
        at.SLOW_TRANSFER.source,
    ),
    Rule(
        "pd/keep",
        _PD,
        Verdict.YES,
        (is_("pd", True), at_least("pd_share", at.MOSTLY_PD)),
        "it is in use for {pd_share} of requests, and nothing that is known speaks against it",
        "only a comparison with as many devices aggregated tells what it is worth",
    ),
    Rule(
        "pd/stalls-at-high-concurrency",
        _PD,
        Verdict.YES,
        (
            is_("tokens_slow", True), at_least("concurrency", at.PD_CONCURRENCY),
            at_least("prompt_tokens_p95", at.LONG_PROMPT),
        ),
        "{concurrency} at the same time with prompts of up to {prompt_tokens_p95} stall each other's streams: apart "
        "they do not",
        "GPUStack on H100: ITL p99 26 times better for long prompts; " + _DOCUMENTATION,
    ),
)  # fmt: skip
