"""Public models: parameters as published, and KV caches as they are known."""

import pytest

from launcher.sizing.kv_cache import layer_caches
from launcher.sizing.matrices import matrices, parameters
from tests.launcher.sizing.models import GIB, NAMES, architecture, engine, part, said

KV_BYTES = {
    "llama-2-7b": 524_288,
    "llama-3.1-8b": 131_072,
    "llama-3.1-70b": 327_680,
    "qwen3-14b": 163_840,
    "mixtral-8x7b": 131_072,
    "qwen3-30b-a3b": 98_304,
    "deepseek-v2-lite": 27 * 576 * 2,
    "deepseek-v3": 61 * 576 * 2,
    "mistral-7b-v0.1": 131_072,
    "gemma-2-9b": 344_064,
    "phi-3-mini-4k": 393_216,
}
"""Of one token in 16 bits, in all layers."""
GIBIBYTES = {
    "llama-3.1-8b": 14.96,  # "Model loading took 14.96 GiB", as vLLM says
    "llama-3.1-70b": 131.42,
    "mixtral-8x7b": 86.99,
    "llama-3.1-8b-w8a8": 8.46,
    "llama-3.1-8b-fp8": 8.46,
    "llama-3.1-70b-w8a8": 67.68,
    "llama-3.1-70b-w4a16": 36.79,
    "qwen3-14b-awq": 9.29,
    "deepseek-v3": 626.9,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_are_those_that_are_published(name):
    assert parameters(matrices(architecture(name))) == said(name)["parameters"]


@pytest.mark.parametrize(("name", "expected"), KV_BYTES.items())
def test_the_kv_cache_of_a_token_is_the_known_one(name, expected):
    layers = layer_caches(architecture(name), element=2, tensor_parallel=1)
    assert sum(layer.bytes_per_token for layer in layers) == expected


@pytest.mark.parametrize(("name", "expected"), GIBIBYTES.items())
def test_the_weights_are_as_large_as_they_are_known_to_be(name, expected):
    assert part(engine(name), "weights") / GIB == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("mistral-7b-v0.1", {4096: 32}),
        ("gemma-2-9b", {4096: 21, None: 21}),
        ("gemma-3-1b", {512: 22, None: 4}),
        ("gemma-3-4b", {1024: 29, None: 5}),
        ("gpt-oss-20b", {128: 12, None: 12}),
        ("phi-3-mini-4k", {2047: 32}),
        ("qwen2.5-7b", {None: 28}),
        ("qwen3-14b", {None: 40}),
        ("llama-3.1-8b", {None: 32}),
    ],
)
def test_each_layer_looks_back_as_far_as_the_family_does(name, windows):
    layers = architecture(name).layers
    assert {window: sum(layer.window == window for layer in layers) for window in windows} == windows
    assert sum(windows.values()) == len(layers)


@pytest.mark.parametrize(
    ("name", "with_experts"),
    [("mixtral-8x7b", 32), ("qwen3-30b-a3b", 48), ("deepseek-v2-lite", 26), ("deepseek-v3", 58), ("llama-3.1-8b", 0)],
)
def test_experts_are_in_the_layers_that_have_them(name, with_experts):
    assert sum(layer.has_experts for layer in architecture(name).layers) == with_experts
