"""What a configuration says, and what is refused honestly."""

import pytest

from launcher.sizing.families import UnknownArchitectureError, architecture_of
from tests.launcher.sizing.models import architecture, said

PLAIN = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("mamba_d_state", 128, "Mamba layers"),
        ("hybrid_override_pattern", "M-M*-", "Mamba layers"),
        ("linear_num_key_heads", 16, "linear attention"),
        ("layer_types", ["linear_attention", "full_attention"], "layers of the kind linear_attention"),
        ("index_head_dim", 128, "a sparse attention with an index of its own"),
        ("num_kv_shared_layers", 10, "layers that share KV"),
        ("attention_chunk_size", 8192, "attention in chunks"),
        ("is_encoder_decoder", True, "an encoder beside its decoder"),
    ],
)
def test_a_cache_that_is_counted_in_another_way_is_said_not_guessed(key, value, told):
    with pytest.raises(UnknownArchitectureError) as caught:
        architecture_of({**PLAIN, key: value, "architectures": ["OddForCausalLM"]})
    assert str(caught.value) == f"OddForCausalLM has {told}, whose memory is not counted here"


@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads", "num_hidden_layers"])
@pytest.mark.parametrize("value", [None, 0, -1, "8", True, [8]])
def test_what_is_missing_is_named(key, value):
    with pytest.raises(UnknownArchitectureError, match=f"its config.json does not say {key}"):
        architecture_of({**PLAIN, key: value})


def test_a_latent_attention_needs_all_its_dimensions():
    with pytest.raises(UnknownArchitectureError, match="qk_rope_head_dim"):
        architecture_of({**PLAIN, "kv_lora_rank": 512})


def test_a_family_that_is_not_known_is_counted_like_llama_and_says_so():
    assert architecture_of({**PLAIN, "model_type": "brand_new"}).is_assumed
    assert not architecture_of(PLAIN).is_assumed


def test_defaults_of_a_family_fill_what_a_configuration_leaves_out():
    found = architecture("gemma-3-4b")
    assert (found.heads, found.kv_heads, found.head_dim, found.vocabulary, found.tied) == (8, 4, 256, 262208, True)


def test_a_window_that_is_switched_off_is_none():
    config = said("qwen2.5-7b")["config"]
    assert all(layer.window is None for layer in architecture_of(config).layers)
    windowed = architecture_of({**config, "use_sliding_window": True, "max_window_layers": 20})
    assert [layer.window for layer in windowed.layers] == [None] * 20 + [131072] * 8


def test_layer_types_decide_before_everything_else():
    config = {**PLAIN, "sliding_window": 64, "layer_types": ["full_attention", "sliding_attention"] * 2}
    assert [layer.window for layer in architecture_of(config).layers] == [None, 64, None, 64]


@pytest.mark.parametrize(
    ("scaling", "longest"),
    [(None, 4096), ({"type": "linear", "factor": 2.0}, 8192), ({"rope_type": "yarn", "factor": 4.0}, 4096)],
)
def test_the_longest_request_is_that_after_scaling(scaling, longest):
    config = {**PLAIN, "max_position_embeddings": 4096, "rope_scaling": scaling}
    assert architecture_of(config).longest == longest


@pytest.mark.parametrize(
    ("told", "dtype"),
    [({"torch_dtype": "bfloat16"}, "bfloat16"), ({"dtype": "float32"}, "float16"), ({}, "bfloat16")],
)
def test_a_checkpoint_in_32_bits_is_served_in_16(told, dtype):
    assert architecture_of({**PLAIN, **told}).dtype == dtype
