"""Pools in a profile: what is written of them, what is planned for them, and what preflight says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from launcher import loader, planner, preflight, resolved
from launcher.command_line import json_of
from launcher.errors import PlanError, ProfileError
from launcher.preflight.finding import Case, Layer
from launcher.site import CLUSTER, POD
from tests.launcher.builders import MACHINE, PAIR, RUN_DIRECTORY, case, model_folder, options, plan, write

POOLS = """\
    pools:
      int8:
        model: {path: /models/tiny-int8}
        quantization: {checkpoint_scheme: int8}
        roles: {decode: {replicas: 2}}
    proxy: {pools: {rules: [{pool: int8, when: {tags: [batch]}}]}}
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write(tmp_path, PAIR + POOLS)


def config(made) -> dict:
    return json.loads(made.files[0].content)


def test_a_pool_is_the_profile_with_what_is_different(profile):
    main, int8 = loader.load(str(profile)).by_pool().values()
    assert (str(main.model.path), str(int8.model.path)) == ("/models/tiny", "/models/tiny-int8")
    assert main.quantization.checkpoint_scheme is None
    assert int8.quantization.checkpoint_scheme == "int8"
    assert (int8.roles.prefill, int8.roles.decode.replicas) == (main.roles.prefill, 2)
    assert int8.roles.decode.kv_cache_memory == main.roles.decode.kv_cache_memory
    assert not main.pools
    assert not int8.pools


def test_its_engines_are_planned_beside_the_others(profile):
    made = plan(profile)
    assert [(each.name, each.pool, each.port, each.side_channel_port) for each in made.engines] == [
        ("prefill-0", "", 8100, 5600),
        ("decode-0", "", 8101, 5601),
        ("prefill-int8-0", "int8", 8102, 5602),
        ("decode-int8-0", "int8", 8103, 5603),
        ("decode-int8-1", "int8", 8104, 5604),
    ]
    for engine in made.engines:
        told = options(engine.argv)
        assert told["--model"] == ("/models/tiny-int8" if engine.pool else "/models/tiny")
        assert told["--served-model-name"] == "tiny"
    instances = config(made)["topology"]["instances"]
    assert [each["pool"] for each in instances] == ["", "", "int8", "int8", "int8"]
    assert {each["fingerprint"]["model"] for each in instances if each["pool"]} == {"/models/tiny-int8"}


def test_cores_are_shared_by_all_and_no_two_pools_get_one_gpu(profile):
    engines = plan(profile, machine=replace(MACHINE, cores=10)).engines
    assert {each.env["OMP_NUM_THREADS"] for each in engines} == {"2"}
    gpus = plan(profile, "device=cuda", "roles.prefill.devices=[2]", "pools.int8.roles.prefill.devices=[3]")
    found = {each.name: each.devices for each in gpus.engines}
    assert found["prefill-0"] == ("GPU-2",)
    assert found["prefill-int8-0"] == ("GPU-3",)
    assert found["decode-0"] == ("GPU-0",)
    assert found["decode-int8-0"] == ("GPU-1",)
    assert found["decode-int8-1"] == ("4",)


def test_kv_files_of_pools_lie_apart(profile):
    made = plan(profile, "kv_transfer.connector=shared-storage")
    folders = {
        each.pool: json_of(options(each.argv)["--kv-transfer-config"])["kv_connector_extra_config"]["connectors"][0][
            "kv_connector_extra_config"
        ]["shared_storage_path"]
        for each in made.engines
    }
    assert folders == {"": "/run/duet/kv", "int8": "/run/duet/kv/int8"}


def test_a_store_that_all_engines_share_is_refused(profile):
    with pytest.raises(PlanError, match=r"^kv_transfer\.connector: pools of the same model would find each other's"):
        plan(profile, "kv_transfer={connector: lmcache, lmcache: {remote_url: 'redis://127.0.0.1:1'}}")


def test_a_pool_may_serve_otherwise_than_the_main_one(profile):
    roles = "pools.int8.roles={prefill: null, decode: null, aggregated: {kv_cache_memory: 256MiB}}"
    made = plan(profile, roles)
    assert [each.name for each in made.engines] == ["prefill-0", "decode-0", "aggregated-int8-0"]
    assert made.connector == "nixl-pull"
    alone = plan(profile, "roles={prefill: null, decode: null, aggregated: {kv_cache_memory: 256MiB}}", roles)
    assert (alone.connector, alone.kv_lease) == (None, 0)


def test_a_file_that_extends_another_changes_its_pools(profile):
    over = write(
        profile.parent,
        """\
        extends: mine.yaml
        pools:
          int8: {model: {path: null, id: some/model, revision: abc}, roles: {decode: {replicas: null}}}
          plain: {speculation: null}
        """,
        "over.yaml",
    )
    loaded = loader.load(str(over))
    int8, plain = loaded.pools["int8"], loaded.pools["plain"]
    assert (int8.model.id, int8.model.path, int8.model.revision) == ("some/model", None, "abc")
    assert int8.roles.decode.replicas == 1
    assert plain.model == loaded.model
    gone = loader.load(str(over), ["pools=null", "proxy.pools=null"])
    assert not gone.pools


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("proxy.pools.rules=[{pool: int4}]", "proxy.pools.rules.0.pool: there is no pool int4; there are: main, int8"),
        (
            "proxy.pools.rules=[{pool: int8}, {pool: main, when: {tags: [a]}}]",
            "proxy.pools.rules.0.when: without a condition it takes all requests",
        ),
        (
            "proxy.pools.rules=[{pool: int8, when: {tags: [a]}}, {pool: main, when: {tags: [a]}}]",
            "proxy.pools.rules.1: rule 0 takes all requests that it would take",
        ),
        (
            "proxy.pools.rules=[{pool: int8, when: {expected_acceptance: {min: 0.5}}}]",
            "proxy.pools.rules.0.when.expected_acceptance: no engine tells how many draft tokens were accepted: set "
            "speculation.report_acceptance: true",
        ),
        (
            "proxy.pools.rules=[{pool: int8, when: {temperature: {min: 2, max: 1}}}]",
            "nothing is 2 or more and 1 at most: min is above max",
        ),
        (
            "proxy.pools.rules=[{pool: int8, when: {temperature: {max: 1}}}, "
            "{pool: main, when: {temperature: {max: 0.5}}}]",
            "proxy.pools.rules.1: rule 0 takes all requests that it would take",
        ),
        ("proxy.pools.rules=[{pool: int8, when: {tag: a}}]", "when.tag: unknown key, did you mean tags?"),
        ("pools.main={}", "pools.main: main is the profile itself"),
        ("pools.A_b={}", "pools.A_b"),
        ("pools.int8.model.served_name=other", "model.served_name: all pools serve the same names: remove it"),
        ("pools.int8.model.aliases=[other]", "model.aliases: all pools serve the same names: remove it"),
        ("pools.int8.kv_transfer={connector: multi}", "pools.int8.kv_transfer: unknown key"),
        ("pools.int8.rolls={}", "pools.int8.rolls: unknown key, did you mean roles?"),
        ("pools.int8.roles.decode.replica=1", "pools.int8.roles.decode.replica: unknown key, did you mean replicas?"),
        ("pools.int8.roles.aggregated={}", "pools.int8.roles: give either prefill and decode, or aggregated"),
        ("pools.int8=5", "pools.int8: "),
        ("pools=[int8]", "pools: write keys with values below it"),
    ],
)
def test_what_cannot_be_is_refused_at_its_key(profile, override, said):
    with pytest.raises(ProfileError) as refused:
        loader.load(str(profile), [override])
    assert said in str(refused.value)


def test_a_fault_of_the_profile_is_told_once_and_one_of_a_pool_with_its_line(profile):
    with pytest.raises(ProfileError) as refused:
        loader.load(str(profile), ["roles.decode.replicas=0"])
    assert len(refused.value.messages) == 1
    profile.write_text(profile.read_text().replace("replicas: 2", "replicas: two"))
    with pytest.raises(
        ProfileError, match=r"mine\.yaml:11: pools\.int8\.roles\.decode\.replicas: write a whole number"
    ):
        loader.load(str(profile))


def test_what_cannot_be_planned_is_refused_with_the_pools_name(profile):
    with pytest.raises(PlanError, match=r"^pools\.int8\.roles\.decode\.nodes: 2 machines"):
        plan(profile, "pools.int8.roles.decode={nodes: 2, tensor_parallel: 2}")
    with pytest.raises(PlanError, match=r"^pools\.int8\.roles\.decode\.devices: 1 device\(s\) are named"):
        plan(profile, "device=cuda", "pools.int8.roles.decode.devices=[1]")


def test_a_cluster_is_refused(profile):
    with pytest.raises(PlanError, match=r"^pools: they are for one machine"):
        planner.plan(loader.load(str(profile)), POD, name="mine", run_directory=RUN_DIRECTORY, site=CLUSTER)


def test_only_what_is_written_of_a_pool_is_shown(profile):
    shown = {each.key: each.value for each in resolved.values(loader.resolve(str(profile)))}
    assert {key: value for key, value in shown.items() if key.startswith("pools")} == {
        "pools.int8.model.path": "/models/tiny-int8",
        "pools.int8.quantization.checkpoint_scheme": "int8",
        "pools.int8.roles.decode.replicas": 2,
    }


def found(judged: Case, *layers: Layer) -> list[str]:
    return [f"{each.rule} {each.fault.key}" for each in preflight.judge(judged, layers or (Layer.STATIC,))]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """Overrides that name folders that are there."""
    main = model_folder(tmp_path / "main" / "tiny")
    int8 = model_folder(tmp_path / "int8", {"quantization_config": {"quant_method": "gptq", "bits": 8}})
    return f"model={{path: {main}, max_model_len: 2048}}", f"pools.int8.model.path={int8}"


def test_preflight_finds_nothing_in_pools_that_are_well(profile, folders):
    assert found(case(profile, *folders), *set(Layer) - {Layer.HOST}) == []


def test_each_pools_model_is_judged_under_its_own_key(profile, folders):
    assert found(case(profile, folders[0])) == ["model/files-there pools.int8.model.path"]
    assert found(case(profile, *folders, "pools.int8.quantization.checkpoint_scheme=int4")) == [
        "quantization/as-declared pools.int8.quantization.checkpoint_scheme"
    ]
    (each,) = preflight.judge(case(profile, folders[0]), {Layer.STATIC})
    assert each.place == f"{profile}:9"


def test_pairs_are_compared_within_a_pool(profile, folders):
    prefill, decode = "pools.int8.roles.prefill.block_size=64", "pools.int8.roles.decode.block_size="
    assert found(case(profile, *folders, prefill, f"{decode}32")) == ["agreement/prefill-decode pools.int8.roles"]
    both = (prefill, f"{decode}64")
    assert found(case(profile, *folders, *both)) == []


def test_a_setting_that_pools_inherit_is_told_once(profile, folders):
    judged = case(profile, *folders, "env.VLLM_LOGING_LEVEL=DEBUG")
    assert found(judged) == ["environment/unknown-variable env.VLLM_LOGING_LEVEL"]


def test_memory_is_judged_by_pool_and_for_all_together(profile, folders):
    little = "pools.int8.roles.decode.kv_cache_memory=1MiB"
    assert found(case(profile, *folders, little), Layer.MEMORY) == [
        "memory/one-request pools.int8.roles.decode.kv_cache_memory"
    ]
    assert "memory/machine roles" in found(case(profile, *folders, "pools.int8.roles.decode.replicas=12"), Layer.MEMORY)


def test_pools_that_share_a_gpu_must_leave_room_for_each_other(profile, folders):
    on_cuda = (
        "device=cuda",
        "roles.prefill.devices=[0]",
        "roles.decode.devices=[1]",
        "pools.int8.roles.decode.replicas=1",
    )
    assert found(case(profile, *folders, *on_cuda, *without_kv_size())) == [
        "devices/shares pools.int8.roles.prefill.gpu_memory_utilization",
        "devices/shares pools.int8.roles.decode.gpu_memory_utilization",
    ]
    half = [f"roles.{role}.gpu_memory_utilization=0.5" for role in ("prefill", "decode")]
    assert found(case(profile, *folders, *on_cuda, *without_kv_size(), *half)) == []


def without_kv_size() -> list[str]:
    return [f"roles.{role}.kv_cache_memory=null" for role in ("prefill", "decode")]


def test_rules_that_do_not_do_what_they_seem_to_are_told(profile, folders):
    rules = "proxy.pools.rules=[{pool: int8, when: {models: [tiny, small]}}]"
    assert found(case(profile, *folders, rules)) == ["pools/models-of-rules proxy.pools.rules.0.when.models"]
    assert found(case(profile, *folders, rules, "model.aliases=[small]")) == []
    assert found(case(profile, *folders, "proxy.pools.rules=null")) == ["pools/without-rule pools.int8"]
    long = "proxy.pools.rules=[{pool: int8, when: {prompt_tokens: {min: 4096}}}]"
    assert found(case(profile, *folders, long, "pools.int8.model.max_model_len=4096")) == [
        "pools/too-long proxy.pools.rules.0.when.prompt_tokens.min"
    ]
