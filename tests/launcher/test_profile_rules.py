"""What goes together in a profile and what does not."""

import pytest

from launcher import loader
from launcher.errors import ProfileError
from tests.launcher.builders import PAIR, write

CUDA = """\
    description: on GPUs
    device: cuda
    model: {id: a/b}
    roles:
      prefill: {}
      decode: {}
"""
NGRAM = "speculation={method: ngram, num_speculative_tokens: 3}"


@pytest.fixture
def cpu(tmp_path):
    return str(write(tmp_path, PAIR, "cpu.yaml"))


@pytest.fixture
def cuda(tmp_path):
    return str(write(tmp_path, CUDA, "cuda.yaml"))


def refused(reference, *overrides):
    with pytest.raises(ProfileError) as caught:
        loader.load(reference, overrides)
    return str(caught.value)


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_prefill_and_decode_come_together(cuda, role):
    assert "prefill and decode come together" in refused(cuda, f"roles.{role}=null")


def test_aggregated_excludes_the_pair(cuda):
    told = refused(cuda, "roles.aggregated={}")
    assert (
        "give either prefill and decode, or aggregated, not all three (null takes away what `extends` brings)" in told
    )
    assert loader.load(cuda, ["roles={prefill: null, decode: null, aggregated: {}}"]).roles.aggregated is not None


def test_some_role_is_needed(cuda):
    assert "give either prefill and decode, or aggregated" in refused(cuda, "roles={prefill: null, decode: null}")


def test_a_rule_of_the_roles_is_told_at_their_line(cuda):
    assert refused(cuda, "roles.decode=null").startswith("--set roles.decode=null: roles: ")


@pytest.mark.parametrize(
    ("text", "size"), [("256MiB", 2**28), ("1GB", 10**9), ("1048576", 2**20), ("1.5GiB", 3 * 2**29)]
)
def test_sizes_have_units(cpu, text, size):
    assert int(loader.load(cpu, [f"roles.decode.kv_cache_memory={text}"]).roles.decode.kv_cache_memory) == size


@pytest.mark.parametrize("text", ["256 apples", "lots", "-1GiB", "[1]"])
def test_what_is_no_size_is_refused(cpu, text):
    assert "roles.decode.kv_cache_memory" in refused(cpu, f"roles.decode.kv_cache_memory={text}")


def test_a_quantized_checkpoint_is_not_quantized_again(cuda):
    both = ("quantization.weights=mxfp8", "quantization.checkpoint_scheme=int4")
    assert "is not quantized again" in refused(cuda, *both)
    loader.load(cuda, ["quantization.checkpoint_scheme=int4"])


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.path=/m"],
        ["model.bundled=smollm2-135m-instruct"],
        ["model.id=null"],
        ["model.id=null", "model.bundled=x"],
    ],
)
def test_a_model_has_exactly_one_known_source(cuda, overrides):
    assert "model" in refused(cuda, *overrides)


@pytest.mark.parametrize("source", ["path=/m", "bundled=smollm2-135m-instruct"])
def test_each_source_of_a_model_alone_is_accepted(cuda, source):
    loader.load(cuda, ["model.id=null", f"model.{source}"])


def test_only_a_hub_id_has_a_revision(cuda):
    loader.load(cuda, ["model.revision=main"])
    message = refused(cuda, "model.id=null", "model.path=/m", "model.revision=main")
    assert "revision belongs to a hub id" in message


@pytest.mark.parametrize("method", ["draft_model", "eagle", "eagle3"])
def test_a_method_with_a_draft_model_needs_it(cuda, method):
    text = f"method: {method}, num_speculative_tokens: 3"
    assert "needs a draft model" in refused(cuda, f"speculation={{{text}}}")
    loader.load(cuda, [f"speculation={{{text}, draft: a/c}}"])


@pytest.mark.parametrize("method", ["ngram", "ngram_gpu"])
def test_a_method_without_a_draft_model_takes_none(cuda, method):
    text = f"method: {method}, num_speculative_tokens: 3"
    assert "uses no draft model" in refused(cuda, f"speculation={{{text}, draft: a/c}}")
    loader.load(cuda, [f"speculation={{{text}}}"])


def test_prompt_lookup_belongs_to_ngram(cuda):
    loader.load(cuda, [NGRAM, "speculation.prompt_lookup_max=4", "speculation.prompt_lookup_min=2"])
    message = refused(cuda, NGRAM, "speculation.method=mtp", "speculation.prompt_lookup_max=4")
    assert "belong to method ngram" in message


@pytest.mark.parametrize(
    "override",
    [
        "roles.decode.replicas=0",
        "roles.decode.tensor_parallel=0",
        "roles.decode.gpu_memory_utilization=1.1",
        "roles.decode.gpu_memory_utilization=0",
        "kv_transfer.lease=4",
        "startup_timeout=0",
        "proxy.port=0",
        "ports.engine=65536",
        "proxy.timeouts.idle=0",
        "proxy.timeouts.idle=1e999",
        "model.max_model_len=0",
    ],
)
def test_a_number_out_of_its_range_is_refused_at_its_key(cuda, override):
    assert f": {override.partition('=')[0]}: " in refused(cuda, override)


@pytest.mark.parametrize("override", ["kv_transfer.connector=pigeons", "kv_transfer.load_failure_policy=retry"])
def test_an_unknown_choice_lists_the_known(cuda, override):
    assert "Input should be '" in refused(cuda, override)


def test_every_shipped_profile_has_a_description():
    for name in loader.shipped_profiles():
        assert loader.load(name).description


@pytest.mark.parametrize("given", ["127.0.0.1:4318", "ftp://collector", "http://a b", "http://collector?x=1"])
def test_what_is_no_address_of_a_collector_is_answered_with_an_example(given):
    message = refused("demo", f"proxy.tracing={{endpoint: '{given}'}}")
    assert "proxy.tracing.endpoint: write the address of a collector, e.g. http://127.0.0.1:4318, not" in message
