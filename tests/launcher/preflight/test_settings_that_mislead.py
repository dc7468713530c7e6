"""Settings that production systems took for others, did nothing with, or only missed at the first request."""

import pytest

from launcher import loader
from launcher.errors import PlanError, ProfileError
from launcher.preflight.finding import Severity
from tests.launcher.builders import case, options, plan, write
from tests.launcher.preflight.folders import adapter, checkpoint, judged, pair

HEAD = """\
    description: a pair
    device: cpu
    model:
      path: /models/tiny
      %s
    proxy:
      %s
    roles:
      prefill: {kv_cache_memory: 256MiB}
      decode:
        kv_cache_memory: 256MiB
        %s
"""


def faults(folder, model="revision: null", proxy="port: 8000", decode="replicas: 1", more=""):
    with pytest.raises(ProfileError) as caught:
        loader.load(str(write(folder, HEAD % (model, proxy, decode) + more)))
    return str(caught.value)


@pytest.mark.parametrize("word", ['"false"', '"true"', "no", "off", "yes", "1"])
def test_a_switch_that_only_looks_like_one_is_told_at_its_key(tmp_path, word):
    assert "roles.decode.enable_prefix_caching: write true or false, unquoted, not " in faults(
        tmp_path, decode=f"enable_prefix_caching: {word}"
    )


def test_an_explicit_false_reaches_the_engine():
    settled = plan("api-throughput", "roles.decode.enable_prefix_caching=false")
    assert "--no-enable-prefix-caching" in settled.engines[-1].argv


@pytest.mark.parametrize(
    ("given", "key", "hint"),
    [
        ({"model": "served_name: [a, b]"}, "model.served_name", "write text"),
        ({"model": "revision: 1e5"}, "model.revision", "in quotes if it looks like a number"),
        ({"model": "max_model_len: 4e3"}, "model.max_model_len", "write a whole number"),
        ({"model": "trust_remote_cod: true"}, "model.trust_remote_cod", "did you mean trust_remote_code?"),
        ({"proxy": 'port: "08000"'}, "proxy.port", "write a whole number"),
        ({"proxy": "port: 08000"}, "proxy.port", "write a whole number"),
        ({"decode": "devices: 0,1"}, "roles.decode.devices", "write a list"),
        ({"decode": "- replicas: 1"}, "", "not valid YAML"),
        ({"decode": "gpu_memory_utilization: 90%"}, "roles.decode.gpu_memory_utilization", "write a number"),
        ({"more": "    language: no\n"}, "language", "unknown key"),
        ({"more": "    device: cuda\n"}, "device", "stands twice, first at"),
        ({"more": "    env:\n\tA: b\n"}, "", "YAML indents with spaces, not tabs"),
    ],
)
def test_a_wrong_type_a_misspelled_key_and_a_tab_end_in_a_message_with_the_key(tmp_path, given, key, hint):
    told = faults(tmp_path, **given)
    assert f"mine.yaml:{_line(told)}: {key}" in told
    assert hint in told


def test_a_number_in_place_of_a_model_is_told(tmp_path):
    file = write(tmp_path, "extends: api-throughput\nmodel: {id: 123}\n")
    with pytest.raises(ProfileError, match=r"mine\.yaml:2: model\.id: write text, in quotes.*, not 123"):
        loader.load(str(file))


def test_a_list_in_place_of_keys_is_told(tmp_path):
    file = write(tmp_path, "extends: api-throughput\nroles:\n  decode:\n    - tensor_parallel: 2\n")
    with pytest.raises(ProfileError, match=r"mine\.yaml:3: roles\.decode: write keys with values below it, not a list"):
        loader.load(str(file))


def test_what_the_hub_would_be_asked_for_offline_is_listed_with_its_keys(tmp_path):
    folder = checkpoint(tmp_path)
    lora = "model.lora={adapters: {a: org/adapter}}"
    draft = "speculation={method: draft_model, num_speculative_tokens: 3, draft: org/draft}"
    told = pair(
        folder, "model.tokenizer=org/tokenizer", lora, draft, 'env.HF_HUB_OFFLINE="1"', 'env.HF_HUB_CACHE="/gone"'
    )
    found = judged(told, "environment/offline")
    assert {each.key: each.what.partition(" ")[0] for each in found} == {
        "model.tokenizer": "org/tokenizer",
        "model.lora.adapters.a": "org/adapter",
        "speculation.draft": "org/draft",
    }
    assert all(engine.env["HF_HUB_OFFLINE"] == "1" for engine in told.plan.engines)


def test_nothing_is_asked_of_the_hub_when_all_is_in_folders(tmp_path):
    folder, added = checkpoint(tmp_path / "m"), adapter(tmp_path / "a")
    told = pair(folder, f'model.tokenizer="{folder}"', f'model.lora={{adapters: {{a: "{added}"}}}}')
    assert not judged(told, "environment/offline")
    assert all(engine.env["HF_HUB_OFFLINE"] == "1" for engine in told.plan.engines)


@pytest.mark.parametrize("option", ["model", "served-model-name", "served_model_name"])
@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_the_roles_cannot_be_given_models_or_names_of_their_own(role, option):
    with pytest.raises(PlanError, match="Duet sets --"):
        plan("api-throughput", f"roles.{role}.engine_args.{option}=other")


def test_both_roles_are_given_the_same_model_name_and_dtype():
    prefill, decode = (options(each.argv) for each in plan("api-throughput").engines)
    assert all(prefill[key] == decode[key] for key in ("--model", "--served-model-name", "--dtype", "--kv-cache-dtype"))


@pytest.mark.parametrize(
    "override",
    [
        "roles.prefill={block_size: 32, tensor_parallel: 2}",
        "roles.prefill.quantization={kv_cache_dtype: fp8}",
        "roles.prefill.attention_backend=FLASHINFER",
        "roles.prefill.engine_args.hf-overrides={rope_theta: 1}",
    ],
)
def test_what_lays_out_a_kv_cache_must_be_the_same_on_both_roles(override):
    block = "roles.decode.block_size=16"
    assert judged(case("api-throughput", override, block), "agreement/prefill-decode")
    assert not judged(case("api-throughput", "roles.prefill.block_size=16", block), "agreement/prefill-decode")


EAGLE = "{method: eagle3, num_speculative_tokens: 3, draft: org/heads}"
NGRAM = "{method: ngram, num_speculative_tokens: 3}"


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        ([f"roles.decode.speculation={EAGLE}"], True),
        ([f"roles.decode.speculation={EAGLE}", f"roles.prefill.speculation={EAGLE}"], False),
        ([f"speculation={EAGLE}"], False),
        ([f"speculation={EAGLE}", "roles.prefill.speculation={method: 'off'}"], True),
        ([f"roles.decode.speculation={NGRAM}"], False),
        ([f"roles.prefill.speculation={EAGLE}", f"roles.decode.speculation={NGRAM}"], True),
    ],
)
def test_a_draft_with_a_kv_cache_is_on_both_roles_or_on_none(overrides, refused):
    assert bool(judged(case("api-throughput", *overrides), "agreement/prefill-decode")) is refused


def test_a_kv_cache_of_8_bits_without_scales_is_told_and_with_them_is_not(tmp_path):
    weights = {"quant_method": "compressed-tensors", "format": "float-quantized"}
    override = "quantization={kv_cache_dtype: fp8}"
    bare = pair(checkpoint(tmp_path / "a", {"quantization_config": weights}), override)
    (fault, *_) = judged(bare, "kv-cache/fp8-without-scales")
    assert fault.severity is Severity.WARNING
    scaled = {**weights, "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    assert not judged(
        pair(checkpoint(tmp_path / "b", {"quantization_config": scaled}), override), "kv-cache/fp8-without-scales"
    )


@pytest.mark.parametrize("text", ["tcp://10.0.0.7:80", "8100"])
def test_a_port_that_a_cluster_s_service_puts_into_the_environment_is_refused(text):
    (fault,) = judged(case("demo", f'roles.decode.env.VLLM_PORT="{text}"'), "environment/vllm-port")
    assert fault.key == "roles.decode.env.VLLM_PORT"
    (fault,) = judged(case("demo", environ={"VLLM_PORT": text}), "environment/vllm-port")
    assert fault.key == "env"
    assert "in the launcher's own environment" in fault.what
    assert not judged(case("demo", "env={VLLM_PORT: '29500'}", environ={"VLLM_PORT": text}), "environment/vllm-port")


def _line(told):
    return told.split("mine.yaml:")[1].split(":")[0]
