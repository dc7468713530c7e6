"""How both sides are served."""

from pathlib import Path

import pytest

from launcher import loader, planner
from launcher.profile import Device
from launcher.quantize.gate.settings import NAME, as_in, default, profile_of
from tests.launcher.builders import MACHINE, options, write

MINE = """\
    description: mine
    device: cuda
    model: {id: org/name, dtype: float16, trust_remote_code: true, max_model_len: 9000}
    quantization: {kv_cache_dtype: fp8}
    speculation: {method: ngram, num_speculative_tokens: 2}
    engine_args: {max-logprobs: 5, swap-space: 1}
    env: {A: b}
    startup_timeout: 77
    roles:
      prefill: {tensor_parallel: 4, devices: [0, 1, 2, 3]}
      decode:
        {tensor_parallel: 2, devices: [2, 3], gpu_memory_utilization: 0.7, attention_backend: FLASH_ATTN,
         engine_args: {max_logprobs: 6}}
"""


def planned(model: Path, serving):
    plan = planner.plan(profile_of(model, serving, 9000), MACHINE, name="gate", run_directory=Path("/run"))
    (engine,) = plan.engines
    return engine, options(engine.argv)


def test_a_profile_says_how(tmp_path: Path):
    serving = as_in(loader.load(str(write(tmp_path, MINE))), 2049)
    engine, told = planned(tmp_path / "a model", serving)
    assert told["--model"] == str(tmp_path / "a model")
    assert told["--served-model-name"] == NAME
    assert (told["--dtype"], told["--kv-cache-dtype"], told["--max-model-len"]) == ("float16", "fp8", "2049")
    assert (told["--tensor-parallel-size"], told["--gpu-memory-utilization"]) == ("2", "0.7")
    assert (told["--attention-backend"], told["--swap-space"]) == ("FLASH_ATTN", "1")
    assert "--trust-remote-code" in told
    assert engine.devices == ("GPU-2", "GPU-3")
    assert engine.env["A"] == "b"
    assert serving.startup_timeout == 77


def test_what_would_falsify_a_comparison_is_left_out(tmp_path: Path):
    _, told = planned(tmp_path, as_in(loader.load(str(write(tmp_path, MINE))), 2049))
    assert told["--max-logprobs"] == "20"
    assert told["--logprobs-mode"] == "raw_logprobs"
    assert "--no-enable-prefix-caching" in told
    assert not {"--speculative-config", "--kv-transfer-config", "--quantization"} & told.keys()


@pytest.mark.parametrize(("device", "share", "memory"), [(Device.CPU, None, "1073741824"), (Device.CUDA, "0.85", None)])
def test_there_are_defaults_for_each_device(tmp_path: Path, device, share, memory):
    engine, told = planned(tmp_path, default(device, 513))
    assert told.get("--gpu-memory-utilization") == share
    assert told.get("--kv-cache-memory-bytes") == memory
    assert (told["--dtype"], told["--max-model-len"]) == ("auto", "513")
    assert engine.host == "127.0.0.1"


def test_both_sides_differ_in_the_model_only():
    serving = default(Device.CPU, 513)
    _, a = planned(Path("/models/a"), serving)
    _, b = planned(Path("/models/b"), serving)
    assert {name for name in a if a[name] != b[name]} == {"--model"}
