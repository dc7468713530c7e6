"""For every rule: facts with which it speaks, and facts with which it just does not."""

from typing import NamedTuple

from launcher.advice.facts import Value

Facts = dict[str, Value]


class Example(NamedTuple):
    speaks: Facts
    silent: Facts


IDLE: Facts = {
    "throughput_short": True,
    "memory_short": False,
    "ttft_slow": False,
    "tokens_slow": False,
    "waiting": 0.9,
    "batch": 7.9,
}
ONLY_TTFT: Facts = {
    "quantized": "none",
    "ttft_slow": True,
    "memory_short": False,
    "tokens_slow": False,
    "throughput_short": False,
}
ONLY_MEMORY: Facts = {"memory_short": True, "ttft_slow": False, "tokens_slow": False, "throughput_short": False}
NOTHING: Facts = ONLY_MEMORY | {"memory_short": False}
STALLS: Facts = {"tokens_slow": True, "concurrency": 50.0, "prompt_tokens_p95": 2048.0}
CUDA: Facts = {"device": "cuda"}

EXAMPLES: dict[str, Example] = {
    "everything/nothing-is-short": Example(NOTHING, NOTHING | {"tokens_slow": True}),
    "everything/clients-are-the-bottleneck": Example(IDLE, IDLE | {"waiting": 1.0}),
    "quantization/already": Example({"quantized": "other"}, {"quantized": "none"}),
    "quantization/fp8-on-cpu": Example({"device": "cpu"}, CUDA),
    "quantization/fp8-without-hardware": Example(
        CUDA | {"compute_capability": 8.6}, CUDA | {"compute_capability": 8.9}
    ),
    "quantization/int8-on-blackwell": Example(CUDA | {"compute_capability": 10.0}, CUDA | {"compute_capability": 9.0}),
    "quantization/int8-on-old-gpus": Example(CUDA | {"compute_capability": 7.0}, CUDA | {"compute_capability": 7.5}),
    "quantization/int4-cures-neither-prompts-nor-batches": Example(
        {"memory_short": False, "tokens_slow": False}, {"memory_short": True, "tokens_slow": False}
    ),
    "quantization/int4-of-a-large-model-for-exact-work": Example(
        {"parameters": 13.0, "exact_work": True}, {"parameters": 12.9, "exact_work": True}
    ),
    "quantization/first-token": Example(ONLY_TTFT, ONLY_TTFT | {"tokens_slow": True}),
    "quantization/keep-fp8": Example({"quantized": "fp8"}, {"quantized": "int8"}),
    "quantization/keep-int8": Example({"quantized": "int8"}, {"quantized": "fp8"}),
    "quantization/keep-int4": Example({"quantized": "int4"}, {"quantized": "none"}),
    "quantization/memory": Example(
        {"memory_short": True, "quantized": "none"}, {"memory_short": True, "quantized": "int8"}
    ),
    "quantization/tokens": Example(
        {"tokens_slow": True, "quantized": "none"}, {"tokens_slow": False, "quantized": "none"}
    ),
    "quantization/throughput": Example(
        {"throughput_short": True, "quantized": "none"}, {"throughput_short": False, "quantized": "none"}
    ),
    "speculation/tokens-are-fast-enough": Example({"tokens_slow": False}, {"tokens_slow": True}),
    "speculation/high-load": Example({"batch": 32.0}, {"batch": 31.9}),
    "speculation/high-temperature": Example({"temperature": 1.0}, {"temperature": 0.9}),
    "speculation/min-p-or-logit-bias": Example({"min_p_or_logit_bias": True}, {"min_p_or_logit_bias": False}),
    "speculation/short-answers": Example({"output_tokens_p95": 15.0}, {"output_tokens_p95": 16.0}),
    "speculation/ngram-of-unpredictable-output": Example({"predictable": False}, {"predictable": True}),
    "speculation/ngram-accepted-too-seldom": Example(
        {"speculation": "ngram", "acceptance": 0.49}, {"speculation": "ngram", "acceptance": 0.5}
    ),
    "speculation/draft-accepted-too-seldom": Example(
        {"speculation": "eagle3", "acceptance": 0.49}, {"speculation": "ngram", "acceptance": 0.49}
    ),
    "speculation/no-room-for-a-draft": Example({"draft_fits": False}, {"draft_fits": True}),
    "speculation/ngram-beside-a-draft": Example({"speculation": "mtp"}, {"speculation": "ngram"}),
    "speculation/some-load": Example({"batch": 8.0}, {"batch": 7.9}),
    "speculation/draft-of-unpredictable-output": Example({"predictable": False}, {"predictable": True}),
    "speculation/draft-takes-memory": Example(
        {"speculation": "draft_model", "memory_short": True}, {"speculation": "none", "memory_short": True}
    ),
    "speculation/draft-in-place-of-ngram": Example(
        {"speculation": "ngram", "tokens_slow": True}, {"speculation": "none", "tokens_slow": True}
    ),
    "speculation/keep-ngram": Example(
        {"speculation": "ngram", "acceptance": 0.5, "batch": 7.9},
        {"speculation": "ngram", "acceptance": 0.5, "batch": 8.0},
    ),
    "speculation/keep-the-draft": Example(
        {"speculation": "draft_model", "acceptance": 0.5, "batch": 7.9},
        {"speculation": "ngram", "acceptance": 0.5, "batch": 7.9},
    ),
    "speculation/ngram-of-predictable-output": Example(
        {"tokens_slow": True, "predictable": True, "speculation": "none"},
        {"tokens_slow": True, "predictable": True, "speculation": "eagle"},
    ),
    "speculation/draft-for-speed": Example(
        {"tokens_slow": True, "draft_fits": True, "speculation": "none"},
        {"tokens_slow": True, "draft_fits": False, "speculation": "none"},
    ),
    "pd/one-device": Example({"devices": 1.0}, {"devices": 2.0}),
    "pd/low-concurrency": Example({"concurrency": 49.9}, {"concurrency": 50.0}),
    "pd/short-prompts": Example({"prompt_tokens_p95": 255.0}, {"prompt_tokens_p95": 256.0}),
    "pd/short-answers": Example({"output_tokens_p95": 15.0}, {"output_tokens_p95": 16.0}),
    "pd/mostly-cached": Example({"prefix_hit_rate": 0.7}, {"prefix_hit_rate": 0.69}),
    "pd/transfer-eats-the-gain": Example(
        {"kv_transfer_time_p50": 0.2, "prefill_time_p50": 0.2}, {"kv_transfer_time_p50": 0.19, "prefill_time_p50": 0.2}
    ),
    "pd/nobody-watches": Example({"monitoring": False}, {"monitoring": True}),
    "pd/no-stalls": Example(
        {"pd": False, "itl_p99": 0.039, "itl_p50": 0.02}, {"pd": False, "itl_p99": 0.04, "itl_p50": 0.02}
    ),
    "pd/only-memory": Example(ONLY_MEMORY, ONLY_MEMORY | {"tokens_slow": True}),
    "pd/middling-prompts": Example({"prompt_tokens_p95": 2047.0}, {"prompt_tokens_p95": 2048.0}),
    "pd/transfer-costs": Example(
        {"prompt_tokens_p50": 1000.0, "kv_bytes_per_token": 250_000.0, "interconnect": 10.0, "prefill_time_p50": 0.1},
        {"prompt_tokens_p50": 1000.0, "kv_bytes_per_token": 240_000.0, "interconnect": 10.0, "prefill_time_p50": 0.1},
    ),
    "pd/no-rdma": Example({"rdma": False, "prompt_tokens_p95": 2048.0}, {"rdma": True, "prompt_tokens_p95": 2048.0}),
    "pd/no-kubernetes": Example({"kubernetes": False}, {"kubernetes": True}),
    "pd/for-ttft": Example({"ttft_slow": True, "tokens_slow": False}, {"ttft_slow": True, "tokens_slow": True}),
    "pd/for-throughput": Example(
        {"throughput_short": True, "tokens_slow": False}, {"throughput_short": True, "tokens_slow": True}
    ),
    "pd/hardly-used": Example({"pd": True, "pd_share": 0.49}, {"pd": True, "pd_share": 0.5}),
    "pd/slow-transfers": Example(
        {"pd": True, "kv_transfer_time_p95": 0.05}, {"pd": True, "kv_transfer_time_p95": 0.049}
    ),
    "pd/keep": Example({"pd": True, "pd_share": 0.5}, {"pd": True, "pd_share": 0.49}),
    "pd/stalls-at-high-concurrency": Example(STALLS, STALLS | {"concurrency": 49.9}),
    "replicas/throughput-suffices": Example(
        {"throughput_short": False, "ttft_slow": False}, {"throughput_short": True, "ttft_slow": False}
    ),
    "replicas/memory-first": Example({"memory_short": True, "waiting": 1.0}, {"memory_short": True, "waiting": 0.9}),
    "replicas/ttft-is-waiting": Example(
        {"ttft_slow": True, "queue_time_p95": 1.0, "ttft_p95": 2.0},
        {"ttft_slow": True, "queue_time_p95": 0.99, "ttft_p95": 2.0},
    ),
    "replicas/queue": Example({"throughput_short": True, "waiting": 1.0}, {"throughput_short": True, "waiting": 0.9}),
}
