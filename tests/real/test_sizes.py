"""Planned sizes beside those of vLLM itself: weights to the byte, KV caches to the token."""

import json
import os
import subprocess
import sys

import pytest

from launcher.profile import Device
from launcher.sizing import history
from launcher.sizing.instance import size
from launcher.sizing.models import look_up
from launcher.sizing.settings import checkpoints_of, settings_of
from tests.launcher.local.deployments import REPOSITORY

COMMON = {
    "vocab_size": 2048,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
LLAMA = {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
CASES = {
    "a window in every layer": (
        {**COMMON, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 256},
        (),
    ),
    "windows in most layers, and a vocabulary that is padded": (
        {
            **COMMON,
            "architectures": ["Gemma3ForCausalLM"],
            "model_type": "gemma3_text",
            "head_dim": 64,
            "sliding_window": 256,
            "sliding_window_pattern": 6,
            "query_pre_attn_scalar": 64,
            "num_hidden_layers": 8,
            "hidden_activation": "gelu_pytorch_tanh",
            "tie_word_embeddings": True,
            "vocab_size": 2049,
        },
        (),
    ),
    "latent attention and experts": (
        {
            **COMMON,
            "architectures": ["DeepseekV3ForCausalLM"],
            "model_type": "deepseek_v3",
            "num_key_value_heads": 8,
            "kv_lora_rank": 512,
            "q_lora_rank": 96,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "n_routed_experts": 8,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 128,
            "first_k_dense_replace": 1,
            "topk_method": "noaux_tc",
            "n_group": 1,
            "topk_group": 1,
            "routed_scaling_factor": 1.0,
            "scoring_func": "sigmoid",
            "norm_topk_prob": True,
            "num_nextn_predict_layers": 1,
        },
        (),
    ),
    "a draft beside its target, and KV in 8 bits": (
        {**LLAMA, "num_hidden_layers": 6},
        ("--kv-cache-dtype", "fp8", "--speculative-config", "DRAFT"),
    ),
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Case -> its size as planned; ``cases.json`` is what the engine is told."""
    folder = tmp_path_factory.mktemp("sizes")
    draft = folder / "draft"
    for name, config in {"draft": LLAMA, **{name: config for name, (config, _) in CASES.items()}}.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
    speculation = {"method": "draft_model", "model": str(draft), "num_speculative_tokens": 2}
    sizes, told = {}, {}
    for name, (_, extra) in CASES.items():
        arguments = {"model": str(folder / name), "max-model-len": "2000", "kv-cache-memory-bytes": str(64 * 2**20)}
        options = [json.dumps(speculation) if part == "DRAFT" else part for part in extra]
        arguments |= {key.removeprefix("--"): value for key, value in zip(options[::2], options[1::2], strict=True)}
        argv = [part for key, value in arguments.items() for part in (f"--{key}", value)]
        settings = settings_of(argv, {}, Device.CPU, ("", 0))
        sizes[name] = size(name, "", settings, look_up(checkpoints_of(settings), {}), card=2**34)
        told[name] = {key.replace("-", "_"): _value(value) for key, value in arguments.items()}
    (folder / "cases.json").write_text(json.dumps(told))
    return folder, sizes


def _value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_weights_and_kv_caches_of_many_architectures_are_exact(planned):
    folder, sizes = planned
    done = subprocess.run(
        [sys.executable, "-m", "tests.real.loaded_sizes", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "TORCHDYNAMO_DISABLE": "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    real = {each["name"]: each for each in map(json.loads, filter(_is_told, done.stdout.splitlines()))}
    assert set(real) == set(CASES), done.stderr[-3000:]
    for name, sized in sizes.items():
        weights = sum(part.bytes for part in sized.parts if part.name in {"weights", "draft"})
        assert (name, weights, sized.kv.tokens) == (name, real[name]["weights"], real[name]["tokens"])


def _is_told(line):
    return line.startswith('{"name"')


def test_a_started_pair_says_what_came_beside_what_was_planned(pair):
    starts = history.latest(history.read(pair.launcher.run_directory))
    assert set(starts) == {"prefill-0", "decode-0"}
    for start in starts.values():
        assert start.real.tokens == start.planned.tokens > 0
        assert start.real.kv_memory == pytest.approx(start.planned.kv_memory, abs=0.01 * 2**30)
        assert f"{start.instance}: KV cache 0.06 GiB as planned; KV tokens {start.real.tokens:,} tokens as planned" in (
            pair.launcher.output
        )
