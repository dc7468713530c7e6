"""The options and the environment of an engine."""

import json

import pytest

from launcher.errors import PlanError
from tests.launcher.builders import options, plan

NGRAM = "speculation={method: ngram, num_speculative_tokens: 3, prompt_lookup_max: 4}"
DRAFT = "speculation={method: draft_model, num_speculative_tokens: 4, draft: org/draft}"
EXECUTOR = "vllm.v1.executor.uniproc_executor.UniProcExecutor"


def extra(*pairs):
    """What the escape hatch adds to decode's command line."""
    settled = plan("demo", *(f"roles.decode.engine_args.{pair}" for pair in pairs))
    usual = plan("demo").engines[1].argv
    start = usual.index("--kv-transfer-config")
    return list(settled.engines[1].argv[start : len(settled.engines[1].argv) - 2])


def test_keys_of_the_profile_become_options():
    settled = plan(
        "api-throughput",
        "model.revision=abc",
        "roles.decode.max_num_batched_tokens=4096",
        "roles.decode.gpu_memory_utilization=0.8",
        "quantization.kv_cache_dtype=fp8",
    )
    found = options(settled.engines[1].argv)
    assert found["--revision"] == "abc"
    assert found["--tensor-parallel-size"] == "2"
    assert found["--max-num-batched-tokens"] == "4096"
    assert found["--gpu-memory-utilization"] == "0.8"
    assert {options(engine.argv)["--kv-cache-dtype"] for engine in settled.engines} == {"fp8"}


def test_what_the_profile_leaves_open_is_left_to_the_engine():
    found = options(plan("interactive", "model.max_model_len=null").engines[0].argv)
    absent = {"--revision", "--max-model-len", "--tensor-parallel-size", "--quantization", "--enforce-eager"}
    assert not absent & found.keys()


def test_a_quantized_checkpoint_is_recognised_by_the_engine_itself():
    assert "--quantization" not in options(plan("single-gpu").engines[0].argv)


def test_quantization_on_the_way_in_is_an_option_of_both_roles():
    settled = plan("api-throughput", "quantization={weights: fp8_per_tensor, checkpoint_scheme: null}")
    assert {options(engine.argv)["--quantization"] for engine in settled.engines} == {"fp8_per_tensor"}


@pytest.mark.parametrize(
    ("pair", "parts"),
    [
        ("enable-log-requests=true", ["--enable-log-requests"]),
        ("enable_log_requests=false", ["--no-enable-log-requests"]),
        ("max-logprobs=64", ["--max-logprobs", "64"]),
        ("swap=0.5", ["--swap", "0.5"]),
        ("load_format=dummy", ["--load-format", "dummy"]),
        ("api-key=[a, b]", ["--api-key", "a", "b"]),
        ("hf-overrides={a: {b: true}}", ["--hf-overrides", '{"a": {"b": true}}']),
        ("middleware=[{name: a, path: /b}]", ["--middleware", '{"name": "a", "path": "/b"}']),
        ("seed=null", []),
        ('x="true"', ["--x", "true"]),
    ],
)
def test_any_other_option_can_be_given(pair, parts):
    assert extra(pair) == parts


@pytest.mark.parametrize(
    "key",
    [
        "model",
        "port",
        "host",
        "served-model-name",
        "kv-transfer-config",
        "kv_transfer_config",
        "no-enforce-eager",
        "max_model_len",
        "kv-cache-memory-bytes",
        "speculative-config",
        "quantization",
        "distributed-executor-backend",
        "kv-transfer-config.kv_role",
        "speculative-config.method",
        "--port",
    ],
)
def test_an_option_that_the_profile_has_a_key_for_is_refused(key):
    with pytest.raises(PlanError, match=r"roles\.decode\.engine_args\."):
        plan("demo", f"roles.decode.engine_args={{{key}: x}}")


def test_the_refusal_says_what_to_do():
    with pytest.raises(PlanError) as caught:
        plan("demo", "roles.decode.engine_args.dtype=float32")
    assert "roles.decode.engine_args.dtype: Duet sets --dtype itself" in str(caught.value)


def test_the_escape_hatch_of_one_role_leaves_the_other_alone():
    prefill, decode = plan("demo", "roles.decode.engine_args.seed=1").engines
    assert "--seed" in decode.argv
    assert "--seed" not in prefill.argv


def test_a_cpu_engine_computes_in_one_process():
    for engine in plan("demo").engines:
        assert options(engine.argv)["--distributed-executor-backend"] == EXECUTOR


def test_several_cpu_ranks_and_gpus_use_the_executor_of_the_engine():
    for settled in (plan("demo", "roles.decode.tensor_parallel=2"), plan("api-throughput")):
        assert "--distributed-executor-backend" not in options(settled.engines[1].argv)


def test_ngram_runs_on_decode_alone():
    prefill, decode = plan("demo", NGRAM).engines
    assert "--speculative-config" not in prefill.argv
    assert json.loads(options(decode.argv)["--speculative-config"]) == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 4,
    }


def test_a_schedule_becomes_the_engine_s_table_of_k_by_running_requests():
    _, decode = plan("demo", NGRAM, "speculation.schedule=[[1, 4, 3], [5, 16, 1], [17, 512, 0]]").engines
    config = json.loads(options(decode.argv)["--speculative-config"] or "")
    assert config["num_speculative_tokens_per_batch_size"] == [[1, 4, 3], [5, 16, 1], [17, 512, 0]]


@pytest.mark.parametrize(
    "speculation",
    [DRAFT, "speculation={method: mtp, num_speculative_tokens: 1}"]
    + [f"speculation={{method: {m}, num_speculative_tokens: 2, draft: org/d}}" for m in ("eagle", "eagle3")],
)
def test_a_draft_with_kv_layers_is_the_same_on_both_roles(speculation):
    prefill, decode = (options(engine.argv)["--speculative-config"] for engine in plan("demo", speculation).engines)
    assert prefill == decode is not None


def test_threads_of_ngram_are_limited_on_a_cpu():
    assert plan("demo", NGRAM).engines[1].env["NUMBA_NUM_THREADS"] == "1"
    assert "NUMBA_NUM_THREADS" not in plan("demo", DRAFT).engines[1].env


def test_the_hub_is_out_of_reach_when_nothing_comes_from_it():
    folder = ("model.bundled=null", "model.path=/m")
    hub = ("model.bundled=null", "model.id=org/m")
    for overrides, offline in (((), True), (folder, True), ((NGRAM,), True), (hub, False), ((DRAFT,), False)):
        for engine in plan("demo", *overrides).engines:
            assert ("HF_HUB_OFFLINE" in engine.env) is offline


def test_the_time_to_get_ready_reaches_the_engine():
    assert plan("demo", "startup_timeout=77").engines[0].env["VLLM_ENGINE_READY_TIMEOUT_S"] == "77"


def test_with_a_collector_engines_send_their_spans_there_too_each_by_its_name():
    settled = plan("demo", "proxy.tracing={endpoint: 'http://collector:4318/', service_name: mine}")
    for engine in settled.engines:
        assert options(engine.argv)["--otlp-traces-endpoint"] == "http://collector:4318/v1/traces"
        assert engine.env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] == "http/protobuf"
        assert engine.env["OTEL_SERVICE_NAME"] == f"mine-{engine.name}"


def test_without_a_collector_engines_are_told_of_none_but_may_be_by_their_own_option():
    (engine, *_) = plan("demo", "roles.prefill.engine_args.otlp-traces-endpoint=http://a:4317").engines
    assert options(engine.argv)["--otlp-traces-endpoint"] == "http://a:4317"
    assert not [name for name in engine.env if name.startswith("OTEL")]
