"""Data: where speculation does not work, or works and does not pay."""

from launcher.preflight.finding import Severity
from launcher.preflight.matrix.combination import Above, Combination, Is, IsNot

_VLLM = "vLLM 0.32"
_GPU_ONLY = ("ngram_gpu", "dflash", "dspark", "mlp_speculator")

COMBINATIONS = (
    Combination(
        "speculation/method-on-cpu",
        "{speculation_key}.method",
        {"device": Is("cpu"), "method": Is(*_GPU_ONLY)},
        "method {method} needs a GPU",
        "choose ngram or draft_model",
        f"{_VLLM}: the CPU build runs the V1 model runner without Triton",
    ),
    Combination(
        "speculation/mlp-speculator",
        "{speculation_key}.method",
        {"device": Is("cuda"), "method": Is("mlp_speculator")},
        "method {method} has no proposer any more",
        "choose eagle3, draft_model or ngram",
        f'{_VLLM}: "Unknown speculative decoding method" when the engine starts',
    ),
    Combination(
        "speculation/draft-parallel",
        "{speculation_key}.draft.tensor_parallel",
        {"odd_draft_tp": Is(True)},
        "the draft is split over {draft_tp} devices, its target over {tp}",
        "give the draft 1 or {tp}",
        f"{_VLLM}: a draft's tensor parallel size is 1 or its target's",
    ),
    Combination(
        "speculation/draft-model-parallel",
        "{speculation_key}.draft.tensor_parallel",
        {"method": Is("draft_model"), "draft_tp": Is(1), "tp": Above(1)},
        "a draft_model runs on as many devices as its target, {tp}, not {draft_tp}",
        "remove draft.tensor_parallel, or choose a method with heads (eagle3, mtp)",
        f"{_VLLM}: draft_model asserts equal tensor parallel sizes when it runs",
    ),
    Combination(
        "speculation/schedule-and-data-parallel",
        "{speculation_key}.schedule",
        {"scheduled": Is(True), "dp": Above(1)},
        "the schedule is ignored with data_parallel {dp}",
        "remove the schedule, or use replicas in place of data_parallel",
        f"{_VLLM}: dynamic K is disabled with data parallelism",
        severity=Severity.WARNING,
    ),
    Combination(
        "speculation/pipeline-parallel",
        "roles.{role}.pipeline_parallel",
        {"method": Is("ngram", "suffix", "medusa", "mlp_speculator", "draft_model"), "pp": Above(1)},
        "speculation by {method} with pipeline_parallel {pp} is not proven",
        "use tensor_parallel in place of pipeline_parallel, or measure and watch the acceptance rate",
        f"{_VLLM}: these methods run in the V1 model runner, which has no asynchronous scheduling over stages",
        severity=Severity.WARNING,
    ),
    Combination(
        "speculation/large-batches",
        "{speculation_key}",
        {"method": IsNot(), "scheduled": Is(False), "max_num_seqs": Above(64)},
        "speculation stays on with up to {max_num_seqs} requests at a time",
        "add a schedule that ends it, e.g. [[1, 16, {k}], [17, {max_num_seqs}, 0]], or lower max_num_seqs; measure",
        "vLLM and Arctic Inference users: no gain, or a loss, from about 20 to 32 requests on",
        why="a full batch has no compute left over for drafts that are thrown away",
        severity=Severity.WARNING,
    ),
    Combination(
        "speculation/many-tokens",
        "{speculation_key}.num_speculative_tokens",
        {"k": Above(16), "method": IsNot("suffix", "dflash", "dspark")},
        "{k} draft tokens per step are more than any of them is accepted at the end",
        "start with 3 to 8",
        "acceptance falls with each position; published gains are for 3 to 8",
        severity=Severity.WARNING,
    ),
    Combination(
        "speculation/heads-of-the-model",
        "{speculation_key}.method",
        {"method": Is("mtp"), "nextn": Is(0), "has_draft": Is(False)},
        "{model} has no layers for multi-token prediction",
        "choose eagle3 with a draft, draft_model or ngram",
        f"{_VLLM}: mtp loads the layers that config.json counts (num_nextn_predict_layers), of some kinds one unasked",
        needs_model=True,
    ),
    Combination(
        "speculation/lora",
        "{speculation_key}.method",
        {"method": IsNot("ngram", "ngram_gpu", "suffix"), "lora": Is(True)},
        "the draft of method {method} knows nothing of the adapters",
        "measure the acceptance rate of each adapter, or choose ngram",
        f"{_VLLM}: adapters are applied to the target only",
        why="it goes on drafting what the base model would say",
        severity=Severity.WARNING,
    ),
    Combination(
        "speculation/recurrent-model",
        "{speculation_key}.method",
        {"method": IsNot(), "recurrent": Is(True), "pd": Is(True)},
        "speculation together with prefill/decode is not proven for models with recurrent layers",
        "remove speculation, or use the role aggregated",
        "an assertion on the first step after a hand-over, reported for Mamba hybrids with multi-token prediction",
        severity=Severity.WARNING,
        needs_model=True,
    ),
)
