"""Whatever a foreign file says, it is sized, or the answer says why not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing.instance import size
from launcher.sizing.models import ModelFacts
from launcher.sizing.settings import settings_of
from tests.launcher.sizing.models import GIB, NAMES, said

ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = sorted({key for name in NAMES for key in said(name)["config"]} | {"dtype", "rope_parameters", "layer_types"})
OF_QUANTIZATION = ("quant_method", "bits", "group_size", "config_groups", "weight_block_size", "ignore", "zero_point")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), ODD, max_size=3))
def test_any_value_in_a_configuration_is_sized_or_said(name, changes):
    sized = sized_of({**said(name)["config"], **changes}, {})
    assert sized.kv is not None or sized.unknown or sized.card


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["awq", "gptq", "fp8", "compressed-tensors", "mxfp4", "modelopt", "bitsandbytes", "x"]),
    st.dictionaries(st.sampled_from(OF_QUANTIZATION), ODD, max_size=4),
)
def test_any_quantization_is_sized_or_said(method, told):
    sized_of(said("llama-3.2-1b")["config"], {"quant_method": method, **told})


@given(
    ODD,
    st.sampled_from(["weights", "input_activations"]),
    st.dictionaries(st.sampled_from(["num_bits", "group_size", "strategy", "type"]), ODD),
)
def test_any_group_of_compressed_tensors_is_sized_or_said(other, part, told):
    groups = {"a": other, "b": {"weights": {"num_bits": 4}, part: told}}
    sized_of(said("llama-3.2-1b")["config"], {"quant_method": "compressed-tensors", "config_groups": groups})


@pytest.mark.parametrize(
    "options",
    [("--max-model-len", "0"), ("--max-model-len", "-5"), ("--block-size", "0"), ("--tensor-parallel-size", "0"),
     ("--tensor-parallel-size", "x"), ("--kv-cache-memory-bytes", "-1"), ("--gpu-memory-utilization", "x"),
     ("--speculative-config", "[]"), ("--speculative-config", '{"method": 5, "model": 7}'),
     ("--pipeline-parallel-size", "100"), ("--hf-overrides", '{"num_hidden_layers": "many"}'),
     ("--kv-transfer-config", '{"kv_connector": 5}'), ("--max-num-batched-tokens", "0"),
     ("--num-gpu-blocks-override", "0")],
)  # fmt: skip
def test_any_option_is_sized_or_said(options):
    sized_of(said("llama-3.2-1b")["config"], {}, *options)


def sized_of(config, quantization, *options):
    settings = settings_of(("--model", "odd", *options), {}, Device.CUDA, ("", 24 * GIB))
    return size("x", "", settings, {Checkpoint("odd"): ModelFacts("x", config, quantization)}, card=24 * GIB)
