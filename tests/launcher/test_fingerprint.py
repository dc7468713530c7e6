"""What a plan tells of each engine that its partners must share, and what is said of a plan that breaks it."""

import json
from dataclasses import replace

import pytest

from launcher.fingerprint import checkpoints, fingerprints
from launcher.inventory import Checkpoint
from launcher.preflight import agreement
from proxy.config import load
from tests.launcher.builders import MACHINE, case, faults, options, plan

BUNDLED = Checkpoint("/var/cache/duet/models/smollm2-135m-instruct")


def facts(*overrides, machine=MACHINE, of="demo"):
    settled = plan(of, *overrides, machine=machine)
    return fingerprints(settled.engines, machine)


def findings(*overrides, of="demo"):
    return faults(agreement.RULES, case(of, *overrides))


def found(settled, machine=MACHINE):
    """What is said of a plan that no profile gives."""
    return faults(agreement.RULES, replace(case("demo"), plan=settled, inventory=machine))


def with_options(settled, name, *extra, **changes):
    """The plan with other options or fields of one engine."""
    engines = tuple(
        replace(each, argv=(*each.argv, *extra), **changes) if each.name == name else each for each in settled.engines
    )
    return replace(settled, engines=engines)


def test_the_proxy_is_told_what_is_known_of_each_engine(tmp_path):
    settled = plan("demo")
    file = tmp_path / "proxy.json"
    file.write_text(settled.files[0].content)
    told = {each.name: each.fingerprint for each in load(file).topology.instances}
    assert told == fingerprints(settled.engines, MACHINE)
    assert told["prefill-0"] == told["decode-0"]
    assert told["decode-0"] == {
        "vLLM version": "0.32.0",
        "digest of the weights": MACHINE.weights[BUNDLED],
        "model": BUNDLED.name,
        "dtype": "bfloat16",
        "longest sequence": "2048",
        "KV cache dtype": "auto",
        "tensor parallel size": "1",
        "speculation": "without KV layers",
        "KV connector": "NixlConnector",
        "KV connector setting kv_buffer_device": "cpu",
        "KV connector setting kv_lease_duration": "30",
        "variable HF_HUB_OFFLINE": "1",
    }


def test_nothing_is_claimed_of_what_is_not_known():
    known = facts("engine_command=[docker, run, vllm]", machine=replace(MACHINE, weights={}))["decode-0"]
    assert not {"vLLM version", "digest of the weights", "block size", "prefix hash algorithm"} & known.keys()


@pytest.mark.parametrize("name", ["demo", "api-throughput", "batch-cost", "interactive", "single-gpu"])
def test_nothing_is_found_in_a_shipped_profile(name):
    assert findings(of=name) == []


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("attention_backend=FLASHINFER", "option --attention-backend differs: prefill-0 has FLASHINFER"),
        (
            'engine_args.hf_overrides={"rope_theta": 5}',
            'option --hf-overrides differs: prefill-0 has {"rope_theta": 5}',
        ),
        ("engine_args.hf-overrides.rope_theta=5", "option --hf-overrides differs"),
        ("engine_args.disable-hybrid-kv-cache-manager=true", "option --disable-hybrid-kv-cache-manager differs"),
        ("engine_args.load-format=dummy", "option --load-format differs"),
        ("engine_args.mamba-ssm-cache-dtype=float16", "option --mamba-ssm-cache-dtype differs"),
        (
            "engine_args.chat-template-content-format=string",
            "option --chat-template-content-format differs: prefill-0 has string",
        ),
        ("engine_args.tokenizer-mode=slow", "option --tokenizer-mode differs"),
        (
            "env.VLLM_KV_CACHE_LAYOUT=HND",
            "variable VLLM_KV_CACHE_LAYOUT differs: prefill-0 has HND, decode-0 has (not set)",
        ),
        ('env.VLLM_USE_V2_MODEL_RUNNER="1"', "variable VLLM_USE_V2_MODEL_RUNNER differs"),
        ("env.HF_HOME=/elsewhere", "variable HF_HOME differs"),
    ],
)
def test_what_only_one_role_has_is_found_before_the_start(override, told):
    (finding,) = findings(f"roles.prefill.{override}")
    assert finding.startswith(f"roles: prefill and decode cannot exchange KV caches: {told}")
    assert finding.endswith(
        "give it to both roles or to none (roles.prefill and roles.decode: their own keys, engine_args, env)"
    )
    both = (f"roles.prefill.{override}", f"roles.decode.{override}")
    assert findings(*both) == []


@pytest.mark.parametrize(("prefill", "decode", "refused"), [(32, 16, True), (16, 32, False), (32, 32, False)])
def test_block_sizes_that_do_not_fit_are_found(prefill, decode, refused):
    told = findings(f"roles.prefill.block_size={prefill}", f"roles.decode.block_size={decode}")
    assert bool(told) is refused
    assert not refused or "block size differs: prefill-0 has 32, decode-0 has 16" in told[0]


def test_a_block_size_that_only_one_role_sets_is_left_to_the_running_engines():
    assert findings("roles.prefill.block_size=32") == []


@pytest.mark.parametrize(
    "override",
    [
        *("scheduling_policy=priority", "max_num_queued_reqs=5", "max_num_seqs=3"),
        *("max_num_batched_tokens=4096", "env.VLLM_LOGGING_LEVEL=DEBUG", "kv_cache_memory=512MiB", "replicas=3"),
        *("enable_prefix_caching=false", "engine_args.prefix-caching-hash-algo=xxhash"),
    ],
)
def test_what_may_differ_is_no_finding(override):
    assert findings(f"roles.prefill.{override}") == []


def test_all_findings_are_told():
    assert len(findings("roles.prefill.env.VLLM_MLA_DISABLE='1'", "roles.decode.engine_args.tokenizer-mode=slow")) == 2


DRAFT = ("speculation.method=draft_model", "speculation.num_speculative_tokens=2", "speculation.draft=/draft")


def test_speculation_whose_draft_has_kv_layers_is_a_fact():
    assert facts(*DRAFT)["prefill-0"]["speculation"] == "draft_model /draft"
    assert findings(*DRAFT) == []


def test_a_draft_on_decode_alone_is_found():
    (finding,) = findings(*(f"roles.decode.{override}" for override in DRAFT))
    assert "speculation differs: prefill-0 has without KV layers, decode-0 has draft_model /draft" in finding


def test_drafting_more_tokens_on_one_side_is_no_finding():
    settled = plan("demo", *DRAFT)
    more = json.loads(options(settled.engines[1].argv)["--speculative-config"]) | {"num_speculative_tokens": 5}
    assert not found(with_options(settled, "decode-0", "--speculative-config", json.dumps(more)))


def test_speculation_without_kv_layers_may_be_on_decode_alone():
    assert findings("speculation.method=ngram", "speculation.num_speculative_tokens=3") == []


def test_a_draft_without_kv_layers_is_nobodys_business():
    settled = plan("demo")
    config = json.dumps({"method": "medusa", "model": "/draft", "num_speculative_tokens": 2})
    apart = with_options(settled, "decode-0", "--speculative-config", config)
    machine = replace(MACHINE, weights={Checkpoint("/draft"): "1"})
    assert not found(apart, machine)
    assert [*checkpoints(apart.engines[1]).values()] == [BUNDLED]


def test_the_weights_of_a_draft_count():
    settled = plan("demo", *DRAFT, machine=replace(MACHINE, weights={Checkpoint("/draft"): "1"}))
    assert settled.files[0].content.count('"digest of the draft\'s weights": "1"') == 2


def connector(settled, name, **extra):
    """The plan with two connectors in one engine, and other settings of the second."""
    inner = [
        {"kv_connector": "NixlConnector", "kv_role": f"kv_{name}", "engine_id": name},
        {"kv_connector": "ExampleConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra},
    ]
    config = {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": inner}}
    return with_options(settled, name, "--kv-transfer-config", json.dumps(config))


def test_settings_of_connectors_inside_others_are_compared():
    settled = connector(plan("demo"), "prefill-0", shared_storage_path="/a", num_threads=1)
    same = connector(settled, "decode-0", shared_storage_path="/a", num_threads=4)
    assert not found(same)
    assert fingerprints(same.engines, MACHINE)["decode-0"]["KV connector"] == "NixlConnector + ExampleConnector"
    (finding,) = found(connector(settled, "decode-0", shared_storage_path="/b"))
    assert "KV connector setting connectors.1.shared_storage_path differs: prefill-0 has /a, decode-0 has /b" in finding


def test_where_blocks_are_found_by_their_hash_seeds_must_agree():
    settled = connector(connector(plan("demo"), "prefill-0"), "decode-0")
    seeded = with_options(settled, "prefill-0", env={**settled.engines[0].env, "PYTHONHASHSEED": "0"})
    (finding,) = found(seeded)
    assert "prefix hash seed differs: prefill-0 has 0, decode-0 has (not set)" in finding
    assert findings('roles.prefill.env.PYTHONHASHSEED="0"') == []


@pytest.mark.parametrize(("address", "reached"), [("127.0.0.1", False), ("localhost", False), ("10.0.0.11", True)])
def test_a_side_channel_that_cannot_be_reached_from_another_host_is_found(address, reached):
    settled = plan("demo")
    env = {**settled.engines[0].env, "VLLM_NIXL_SIDE_CHANNEL_HOST": address}
    apart = with_options(with_options(settled, "prefill-0", host="10.0.0.11", env=env), "decode-0", host="10.0.0.12")
    told = (
        f"roles.prefill.env.VLLM_NIXL_SIDE_CHANNEL_HOST: prefill-0 tells decode to fetch KV caches from {address}, "
        "but decode runs on another host (10.0.0.12): set roles.prefill.env.VLLM_NIXL_SIDE_CHANNEL_HOST to an address "
        "of 10.0.0.11"
    )
    assert found(apart) == ([] if reached else [told])


def test_what_an_engine_loads_is_read_from_its_command_line():
    (prefill, _) = plan("demo", *DRAFT).engines
    assert [*checkpoints(prefill).values()] == [BUNDLED, Checkpoint("/draft")]
    (engine,) = plan("interactive", "model.revision=v1").engines
    model, draft = checkpoints(engine).values()
    assert (model.revision, draft.revision) == ("v1", None)


@pytest.mark.parametrize("config", ["", "[]", "{nope"])
def test_what_no_engine_can_read_is_left_to_the_engine(config):
    settled = with_options(plan("demo"), "decode-0", f"--speculative-config={config}")
    assert fingerprints(settled.engines, MACHINE)["decode-0"]["speculation"] == "without KV layers"
