"""The size of one engine, and whether it fits."""

import json

import pytest

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing.instance import size
from launcher.sizing.measured import Measured
from launcher.sizing.settings import settings_of
from launcher.sizing.size import Verdict
from tests.launcher.sizing.models import GIB, engine, facts, part

EAGER = "--enforce-eager"


def speculating(method, draft=None, **more):
    config = {"method": method, "model": draft, "num_speculative_tokens": 3, **more}
    return "--speculative-config", json.dumps({key: value for key, value in config.items() if value is not None})


def test_what_is_left_becomes_the_kv_cache():
    sized = engine("llama-3.1-8b", "--max-model-len", "8192", card=79.2)
    assert sized.budget == int(79.2 * GIB * 0.92)
    assert sized.kv.bytes == sized.budget - sized.fixed
    assert sized.kv.blocks == sized.kv.bytes // (16 * 131_072)
    assert sized.kv.tokens == sized.kv.blocks * 16
    assert sized.kv.concurrency == sized.kv.tokens / 8192
    assert sized.verdict is Verdict.FITS


def test_the_error_is_that_of_all_estimates_and_the_least_has_the_margin():
    sized = engine("llama-3.1-8b", card=80)
    assert sized.kv.error == sum(each.error for each in sized.parts)
    assert [each.name for each in sized.parts if each.error == 0] == ["weights"]
    least = (sized.kv.bytes - int(sized.fixed * 0.2)) // (16 * 131_072) * 16
    assert sized.kv.fewest_tokens == least


def test_a_cache_of_a_given_size_is_exact():
    sized = engine("llama-3.1-8b", "--kv-cache-memory-bytes", str(4 * GIB), "--max-model-len", "16384", card=24)
    assert (sized.kv.bytes, sized.kv.error, sized.kv.tokens) == (4 * GIB, 0, 4 * GIB // 131_072)
    assert sized.kv.fewest_tokens == sized.kv.tokens
    assert sized.budget == 24 * GIB


@pytest.mark.parametrize(
    ("card", "verdict"), [(16, Verdict.DOES_NOT_FIT), (19, Verdict.TIGHT), (24, Verdict.FITS), (None, Verdict.UNKNOWN)]
)
def test_a_card_is_too_small_tight_or_large_enough(card, verdict):
    assert engine("llama-3.1-8b", EAGER, "--max-model-len", "4096", card=card).verdict is verdict


def test_without_a_margin_nothing_is_tight():
    sized = engine("llama-3.1-8b", EAGER, "--max-model-len", "4096", card=19, margin=0.0)
    assert sized.verdict is Verdict.FITS


def test_what_the_engine_finds_out_for_itself_is_what_fits():
    sized = engine("llama-3.1-8b", EAGER, "--max-model-len", "auto", card=24)
    assert sized.kv.length == sized.kv.longest < 131072
    assert sized.kv.needed <= sized.kv.bytes


def test_a_request_that_is_too_long_does_not_fit_and_the_longest_that_does_is_known():
    sized = engine("llama-3.1-8b", EAGER, card=24)
    assert sized.verdict is Verdict.DOES_NOT_FIT
    assert 0 < sized.kv.longest < sized.kv.length == 131072


def test_eight_bits_of_kv_hold_twice_as_many_tokens():
    whole, half = (engine("qwen3-14b", "--kv-cache-dtype", kv, card=80) for kv in ("auto", "fp8"))
    assert half.kv.tokens == pytest.approx(2 * whole.kv.tokens, rel=0.001)


def test_a_format_that_is_not_counted_is_said():
    sized = engine("qwen3-14b", "--kv-cache-dtype", "nvfp4")
    assert (sized.kv, sized.verdict) == (None, Verdict.UNKNOWN)
    assert sized.unknown == ("the KV cache's format nvfp4 is not counted",)


def test_weights_are_quantized_while_they_are_loaded():
    sized = engine("llama-3.1-8b", "--quantization", "fp8_per_tensor")
    assert sized.precision == "fp8 (while loading)"
    assert part(sized, "weights") == pytest.approx(part(engine("llama-3.1-8b-fp8"), "weights"), rel=0.001)


def test_a_draft_model_costs_its_weights_and_the_kv_of_its_layers():
    alone = engine("qwen3-14b-awq", "--max-model-len", "8192")
    drafted = engine("qwen3-14b-awq", "--max-model-len", "8192", *speculating("draft_model", "qwen3-0.6b"))
    assert part(drafted, "draft") == pytest.approx(1.11 * GIB, rel=0.01)
    assert drafted.kv.bytes_per_token - alone.kv.bytes_per_token == 28 * 2 * 8 * 128 * 2


def test_layers_that_draft_cost_theirs():
    options = ("--tensor-parallel-size", "8", "--max-model-len", "8192")
    alone = engine("deepseek-v3", *options, card=140)
    drafted = engine("deepseek-v3", *options, *speculating("mtp"), card=140)
    assert part(drafted, "draft") == pytest.approx(11.6e9 / 8, rel=0.1)
    assert drafted.kv.bytes_per_token - alone.kv.bytes_per_token == 576 * 2


def test_adapters_cost_room_for_as_many_as_are_held_at_once():
    one = part(engine("llama-3.1-8b", "--enable-lora", "--max-lora-rank", "16"), "LoRA adapters")
    assert one == pytest.approx(84e6, rel=0.01)  # a file of rank 16 for all linear layers of this model has 84 MB
    assert (
        part(engine("llama-3.1-8b", "--enable-lora", "--max-loras", "4", "--max-lora-rank", "32"), "LoRA adapters")
        == 8 * one
    )
    assert part(engine("llama-3.1-8b"), "LoRA adapters") == 0


def test_n_grams_cost_nothing():
    assert part(engine("qwen3-14b", *speculating("ngram")), "draft") == 0


def test_a_draft_that_is_not_known_is_said():
    sized = engine("qwen3-14b", *speculating("draft_model", "org/other"))
    assert sized.unknown == ("org/other, the draft, is not on this machine, nor shipped with Duet",)
    assert sized.verdict is Verdict.UNKNOWN


def test_a_model_that_is_not_known_still_needs_what_every_engine_needs():
    settings = settings_of(("--model", "org/other", "--kv-cache-memory-bytes", "1G"), {}, Device.CPU, ("", 0))
    sized = size("x", "decode", settings, {}, card=8 * GIB)
    assert [each.name for each in sized.parts] == ["libraries", "KV cache"]
    assert sized.total == 3 * GIB
    assert sized.verdict is Verdict.UNKNOWN


def test_a_model_that_cannot_be_counted_says_why():
    settings = settings_of(("--model", "odd"), {}, Device.CUDA, ("", 0))
    known = facts("llama-3.1-8b")
    for config, reason in (({"hidden_size": 1}, "does not say num_attention_heads"), ({"mamba_d_state": 8}, "Mamba")):
        told = {Checkpoint("odd"): type(known)("x", config)}
        assert reason in size("x", "decode", settings, told, card=GIB).unknown[0]


def test_what_was_measured_takes_the_place_of_estimates():
    before = Measured(weights=15 * GIB, consumed=16 * GIB, activations=2 * GIB, graphs=GIB)
    sized = engine("llama-3.1-8b", card=80, before=before)
    assert {each.name: each.bytes for each in sized.parts} == {
        "weights": 15 * GIB,
        "libraries": GIB,
        "activations": 2 * GIB,
    }
    assert sized.kv.bytes == sized.budget - 18 * GIB
    assert engine("llama-3.1-8b", card=80, before=Measured(tokens=5)).parts == engine("llama-3.1-8b", card=80).parts


@pytest.mark.parametrize(
    ("name", "options", "remark"),
    [
        ("llama-3.1-70b", ("--tensor-parallel-size", "16"), "8 KV heads on 16 devices: each is kept 2 times"),
        ("deepseek-v3", ("--tensor-parallel-size", "8"), "latent attention: each device keeps the whole KV cache"),
        ("qwen3-30b-a3b", ("--data-parallel-size", "4"), "data parallel: 4 KV caches as large as this one"),
        ("gemma-3-4b", (), "what sees or hears beside the language model is not counted"),
    ],
)
def test_what_surprises_is_remarked(name, options, remark):
    assert remark in engine(name, *options, card=140).remarks


def test_a_cpu_needs_no_room_for_graphs_nor_a_share():
    options = ("--kv-cache-memory-bytes", "256M", "--max-model-len", "2048")
    sized = engine("llama-3.2-1b", *options, device=Device.CPU, card=16)
    assert [each.name for each in sized.parts] == ["weights", "libraries"]
    assert sized.kv.block_size == 128
    assert sized.budget == 16 * GIB
