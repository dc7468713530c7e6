"""Fewer bits per weight."""

from launcher.advice import thresholds as at
from launcher.advice.condition import among, at_least, below, is_
from launcher.advice.rule import Rule, Technique, Verdict

_ALL = (Technique.FP8, Technique.INT8, Technique.INT4)
_EIGHT_BITS = (Technique.FP8, Technique.INT8)
_KEEP = "it is in use ({quantized}), and nothing that is known speaks against it"
_KNOWN = "the plan, or the answer"
_ORDER = "measured decision order: FP8 from Ada on, INT8 before it, INT4 where memory or latency is the limit"

RULES = (
    Rule(
        "quantization/already",
        _ALL,
        Verdict.NO,
        (among("quantized", "int8", "int4", "fp8", "other"),),
        "the weights are quantized already ({quantized}); nobody quantizes twice",
        "llm-compressor and vLLM refuse it or do harm",
        "a 16-bit checkpoint to start from, for another scheme",
        of_need=True,
    ),
    Rule(
        "quantization/fp8-on-cpu",
        (Technique.FP8,),
        Verdict.NO,
        (is_("device", "cpu"),),
        "FP8 has no kernels on a {device}: it is 3 to 10 times slower than 16 bits there",
        "measured with vLLM 0.32 on a CPU",
        "INT8 or INT4 on a CPU, or a GPU from Ada on",
    ),
    Rule(
        "quantization/fp8-without-hardware",
        (Technique.FP8,),
        Verdict.NO,
        (is_("device", "cuda"), below("compute_capability", at.FP8_CAPABILITY)),
        "GPUs of compute capability {compute_capability} do not compute in FP8 (from {fp8_capability} on)",
        at.FP8_CAPABILITY.source,
        "Ada, Hopper or Blackwell; INT8 on this one",
    ),
    Rule(
        "quantization/int8-on-blackwell",
        (Technique.INT8,),
        Verdict.NO,
        (is_("device", "cuda"), at_least("compute_capability", at.BLACKWELL)),
        "vLLM has no INT8 kernels for compute capability {compute_capability} ({blackwell} and up)",
        at.BLACKWELL.source,
        "FP8 on this GPU",
    ),
    Rule(
        "quantization/int8-on-old-gpus",
        (Technique.INT8,),
        Verdict.NO,
        (is_("device", "cuda"), below("compute_capability", at.INT8_CAPABILITY)),
        "GPUs of compute capability {compute_capability} have no INT8 kernels in vLLM (from {int8_capability} on)",
        at.INT8_CAPABILITY.source,
        "a GPU from Turing on",
    ),
    Rule(
        "quantization/int4-cures-neither-prompts-nor-batches",
        (Technique.INT4,),
        Verdict.NO,
        (is_("memory_short", False), is_("tokens_slow", False)),
        "neither memory nor the speed of tokens is short, and INT4 weights are unpacked to 16 bits before computing: "
        "prompts and large batches get no faster",
        "how W4A16 kernels work; " + _ORDER,
        "memory or the speed of tokens being short",
        of_need=True,
    ),
    Rule(
        "quantization/int4-of-a-large-model-for-exact-work",
        (Technique.INT4,),
        Verdict.FIRST_MEASURE,
        (at_least("parameters", at.LARGE_MODEL), is_("exact_work", True)),
        "a model of {parameters} ({large_model} and more) loses most at INT4 in mathematics and code, which this is",
        at.LARGE_MODEL.source,
        of_need=True,
    ),
    Rule(
        "quantization/first-token",
        _EIGHT_BITS,
        Verdict.FIRST_MEASURE,
        (
            is_("quantized", "none"), is_("ttft_slow", True), is_("memory_short", False), is_("tokens_slow", False),
            is_("throughput_short", False),
        ),
        "only TTFT is too long: 8 bits compute prompts faster where the kernels are there; by how much "
        "is not published",
        _ORDER,
    ),
    Rule("quantization/keep-fp8", (Technique.FP8,), Verdict.YES, (is_("quantized", "fp8"),), _KEEP, _KNOWN),
    Rule("quantization/keep-int8", (Technique.INT8,), Verdict.YES, (is_("quantized", "int8"),), _KEEP, _KNOWN),
    Rule("quantization/keep-int4", (Technique.INT4,), Verdict.YES, (is_("quantized", "int4"),), _KEEP, _KNOWN),
    Rule(
        "quantization/memory",
        _ALL,
        Verdict.YES,
        (is_("memory_short", True), is_("quantized", "none")),
        "memory is short and the weights have 16 bits: smaller weights leave the rest to the KV cache",
        "arithmetic",
    ),
    Rule(
        "quantization/tokens",
        _ALL,
        Verdict.YES,
        (is_("tokens_slow", True), is_("quantized", "none")),
        "tokens come too slowly: every token reads all weights once, and smaller ones are read faster",
        "one published example: 45 -> 72 tokens/s at INT8, -> 95 at INT4 (13B, one A100)",
    ),
    Rule(
        "quantization/throughput",
        _EIGHT_BITS,
        Verdict.YES,
        (is_("throughput_short", True), is_("quantized", "none")),
        "throughput is short: 8 bits compute large batches faster and leave room for more requests",
        _ORDER,
    ),
)  # fmt: skip
