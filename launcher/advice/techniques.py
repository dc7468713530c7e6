"""What each technique brings and costs: published figures with their sources, which often disagree."""

from collections.abc import Mapping

from launcher.advice.facts import DRAFTS, LOOKUPS
from launcher.advice.rule import NEVER_IN_USE, About, Gain, Stage, Technique

_BEFORE_AND_AFTER = "`launcher advise --window 600` before and after, with the same traffic"
_ONE_EXAMPLE = "one published example (13B on one A100, 45 -> {} tokens/s); slower where a kernel is missing"
_SMALLER = "arithmetic from 16 bits; a file is not memory use: plan 20 % more"
_SIZE = "the engine's own log on starting: its weights and the KV cache that is left"


def _weights(percent: float) -> Gain:
    return Gain("memory of the weights", percent, percent, "%", _SMALLER, _SIZE)


def _speed(high: float, tokens: int) -> Gain:
    source = _ONE_EXAMPLE.format(tokens)
    return Gain("generation speed", 1.0, high, "x", source, f"tokens per second and TPOT: {_BEFORE_AND_AFTER}")


_ACCURACY = "accuracy: {}; compare with the 16-bit model on your own tasks before anybody else sees it"
_QUANTIZED = "a quantized checkpoint must exist or be made, and its kernels must suit the devices"

ABOUT: Mapping[Technique, About] = {
    Technique.FP8: About(
        Stage.QUANTIZATION,
        "FP8 weights and activations",
        {"quantized": ("fp8",)},
        (
            _weights(-50),
            Gain("generation speed", None, None, "x", "no independent figure", f"TPOT: {_BEFORE_AND_AFTER}"),
        ),
        (_ACCURACY.format("a large study of Llama-3.1 (arXiv 2411.02355) calls it lossless"),),
        "`quantization: {weights: fp8_per_tensor}`, "
        "for 16-bit weights; or an FP8 checkpoint and `quantization: {checkpoint_scheme: fp8}`",
    ),
    Technique.INT8: About(
        Stage.QUANTIZATION,
        "INT8 weights and activations (W8A8)",
        {"quantized": ("int8",)},
        (_weights(-50), _speed(1.6, 72)),
        (_ACCURACY.format("1 to 3 % lower when tuned (arXiv 2411.02355)"), _QUANTIZED),
        "`quantization: {checkpoint_scheme: int8}`, with a W8A8 checkpoint in `model`",
    ),
    Technique.INT4: About(
        Stage.QUANTIZATION,
        "INT4 weights (AWQ, GPTQ; W4A16)",
        {"quantized": ("int4",)},
        (_weights(-75), _speed(2.1, 95)),
        (
            _ACCURACY.format("close to INT8 in the same study, worse for 13B and more in mathematics and code"),
            "prompts and large batches compute no faster: weights are unpacked to 16 bits first",
            _QUANTIZED,
        ),
        "`quantization: {checkpoint_scheme: int4}`, with an AWQ, GPTQ or W4A16 checkpoint in `model`",
    ),
    Technique.NGRAM: About(
        Stage.SPECULATION,
        "speculation by n-grams of the prompt",
        {"speculation": LOOKUPS},
        (
            Gain(
                "generation speed", None, None, "x", "depends on how much of the prompt comes back in the answer",
                f"tokens per second, not acceptance alone: {_BEFORE_AND_AFTER}",
            ),
        ),
        ("no memory, no model; slower where nothing of the prompt comes back", "min_p and logit_bias are refused"),
        "`speculation: {method: ngram, num_speculative_tokens: 4}`",
    ),
    Technique.DRAFT: About(
        Stage.SPECULATION,
        "speculation by a draft model or EAGLE",
        {"speculation": (*DRAFTS, "other")},
        (
            Gain(
                "generation speed", 0.84, 3.0, "x",
                "claims: 1.8 to 2.2x small model, 2.5 to 3x EAGLE; measured in vLLM: 1.67x at batch 1, 0.84x at 32",
                f"tokens per second at your load, not acceptance alone: {_BEFORE_AND_AFTER}",
            ),
        ),
        (
            "memory for the draft, taken from the KV cache",
            "min_p and logit_bias are refused",
            "with PD the draft is needed on prefill too",
        ),
        "`speculation: {method: eagle3, draft: ORG/NAME, num_speculative_tokens: 3}`",
    ),
    Technique.PD: About(
        Stage.PD,
        "prefill and decode apart",
        {"pd": (True,)},
        (
            Gain(
                "99th percentile between tokens better by", 1.0, 26.0, "x",
                "GPUStack on H100: 26x for long prompts, none in a mixed stream",
                f"ITL p99: {_BEFORE_AND_AFTER}",
            ),
            Gain(
                "TTFT", -40.0, 117.0, "%",
                "claimed -40 %; llm-d measured +117 %, an agentic trace +72 %",
                f"TTFT, always next to ITL: {_BEFORE_AND_AFTER}; `launcher prove` shows that KV moves",
            ),
            Gain(
                "throughput per device", 0.74, 1.67, "x",
                "predicted by NVIDIA's aiconfigurator; claims of 3 to 5x; vLLM's documentation: no gain",
                f"tokens per second at equal devices: {_BEFORE_AND_AFTER}",
            ),
        ),
        (
            "the weights twice: on prefill and on decode",
            "operations: two pools that must agree exactly, a transfer that can fail",
            "latency where concurrency is low",
        ),
        "`roles: {prefill: {...}, decode: {...}}`, in place of `aggregated`",
    ),
    Technique.REPLICAS: About(
        Stage.MORE,
        "more replicas, each request on one of them",
        NEVER_IN_USE,
        (
            Gain(
                "throughput", 1.0, 2.0, "x", "arithmetic for twice the replicas: at most proportional",
                f"tokens per second: {_BEFORE_AND_AFTER}",
            ),
        ),
        (
            "devices in proportion (`replicas` of the role in the profile)",
            "a prefix cache for each: `proxy.selection` prefix_affinity keeps their hits",
        ),
        "`roles: {aggregated: {replicas: 2}}`",
    ),
}  # fmt: skip
