"""What an engine's command line says of its memory, with the engine's own defaults."""

import json

import pytest

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing.settings import Speculating, checkpoints_of, number, settings_of

GIB = 2**30
H100, A100, SMALL = ("NVIDIA H100", 80 * GIB), ("NVIDIA A100 80GB", 80 * GIB), ("", 24 * GIB)


def settings(*options, device=Device.CUDA, card=H100, env=None):
    return settings_of(("python", "-m", "x", "--model", "org/name", *options), env or {}, device, card)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4096", 4096),
        ("16k", 16_000),
        ("16K", 16_384),
        ("1.5m", 1_500_000),
        ("64M", 64 * 2**20),
        ("x", None),
        ("", None),
    ],
)
def test_numbers_are_read_as_the_engine_reads_them(text, value):
    assert number(text) == value
    assert number(None) is None


@pytest.mark.parametrize(
    ("device", "card", "options", "expected"),
    [
        (Device.CUDA, H100, (), (1024, 8192)),
        (Device.CUDA, A100, (), (256, 2048)),
        (Device.CUDA, SMALL, (), (256, 2048)),
        (Device.CUDA, ("B200", 180 * GIB), (), (1024, 16384)),
        (Device.CPU, SMALL, (), (128, 2048)),
        (Device.CPU, SMALL, ("--tensor-parallel-size", "2"), (256, 4096)),
        (Device.CUDA, SMALL, ("--performance-mode", "throughput"), (512, 4096)),
        (Device.CUDA, SMALL, ("--max-num-seqs", "4"), (4, 2048)),
        (Device.CUDA, SMALL, ("--max-num-batched-tokens", "100"), (100, 100)),
        (Device.CUDA, SMALL, ("--no-enable-chunked-prefill", "--max-model-len", "32768"), (256, 32768)),
        (Device.CUDA, SMALL, ("--max-num-seqs", "1", "--max-model-len", "1000"), (1, 1000)),
    ],
)
def test_steps_are_as_large_as_the_engine_makes_them(device, card, options, expected):
    found = settings(*options, device=device, card=card)
    assert (found.requests, found.step) == expected


def test_any_option_counts():
    found = settings(
        *("--tensor-parallel-size", "4", "--pipeline-parallel-size", "2", "--data-parallel-size", "3"),
        *("--enable-expert-parallel", "--dtype", "float16", "--kv-cache-dtype", "fp8", "--quantization", "mxfp8"),
        *("--block-size", "32", "--gpu-memory-utilization", "0.8", "--num-gpu-blocks-override", "100"),
        *("--enforce-eager", "--max-model-len", "auto", "--revision", "v2", "--hf-overrides", '{"head_dim": 64}'),
    )
    assert (found.sharding.tensor, found.sharding.pipeline, found.sharding.data, found.sharding.experts) == (
        4,
        2,
        3,
        True,
    )
    assert (found.dtype, found.kv_dtype, found.quantization, found.block_size) == ("float16", "fp8", "mxfp8", 32)
    assert (found.share, found.blocks, found.eager, found.longest, found.batches) == (0.8, 100, True, -1, 3)
    assert found.model == Checkpoint("org/name", "v2")
    assert found.overrides == {"head_dim": 64}


def test_a_cache_of_a_given_size_is_read_from_option_or_variable():
    assert settings("--kv-cache-memory-bytes", "1g").kv_memory == 10**9
    assert settings(device=Device.CPU, env={"VLLM_CPU_KVCACHE_SPACE": "4"}).kv_memory == 4 * GIB
    assert settings(env={"VLLM_CPU_KVCACHE_SPACE": "4"}).kv_memory is None


@pytest.mark.parametrize(
    ("options", "batches"),
    [((), 2), (("--no-async-scheduling",), 1), (("--speculative-config", '{"method": "ngram"}'), 1)],
)
def test_steps_under_way_at_once_depend_on_scheduling(options, batches):
    assert settings(*options).batches == batches
    assert settings(*options, device=Device.CPU).batches == 1


@pytest.mark.parametrize(
    ("connector", "windows"),
    [("NixlConnector", True), ("MooncakeConnector", True), ("ExampleConnector", False), ("LMCacheConnectorV1", False)],
)
def test_windows_need_a_connector_that_can_do_with_them(connector, windows):
    config = {"kv_connector": connector}
    assert settings("--kv-transfer-config", json.dumps(config)).windows is windows
    several = {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": [config]}}
    assert settings("--kv-transfer-config", json.dumps(several)).windows is windows
    assert not settings("--disable-hybrid-kv-cache-manager").windows


def test_a_draft_is_looked_up_too():
    config = {
        "method": "draft_model",
        "model": "org/small",
        "num_speculative_tokens": 4,
        "draft_tensor_parallel_size": 1,
    }
    found = settings("--speculative-config", json.dumps(config))
    assert found.speculation == Speculating("draft_model", 4, Checkpoint("org/small"), 1)
    assert [*checkpoints_of(found)] == [Checkpoint("org/name"), Checkpoint("org/small")]
    assert [*checkpoints_of(settings())] == [Checkpoint("org/name")]
