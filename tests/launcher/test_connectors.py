"""What each KV connector needs of the engines, and what of it a profile may say."""

import json

import pytest

from launcher import loader
from launcher.errors import PlanError, ProfileError
from launcher.kv_transfer import CONNECTORS
from proxy.topology import ConnectorKind, Role
from tests.launcher.builders import RUN_DIRECTORY, busy, options, plan

CHOOSE = {
    ConnectorKind.NIXL_PULL: ("demo", ()),
    ConnectorKind.NIXL_PUSH: ("demo", ()),
    ConnectorKind.SHARED_STORAGE: ("demo", ()),
    ConnectorKind.MULTI: ("demo", ()),
    ConnectorKind.MOONCAKE: ("api-throughput", ()),
    ConnectorKind.LMCACHE: ("api-throughput", ("kv_transfer.lmcache={remote_url: 'redis://127.0.0.1:6379'}",)),
}
TWO_PAIRS = ("roles.prefill.replicas=2", "roles.decode.replicas=2")
ONE_GPU = ("roles.prefill.tensor_parallel=1", "roles.decode.tensor_parallel=1")


def planned(kind: ConnectorKind, *overrides: str, machine=None):
    name, needed = CHOOSE[kind]
    more = {} if machine is None else {"machine": machine}
    return plan(name, f"kv_transfer={{connector: {kind}}}", *needed, *overrides, **more)


def configs(kind: ConnectorKind, *overrides: str):
    return [json.loads(options(e.argv)["--kv-transfer-config"]) for e in planned(kind, *overrides).engines]


def refused(*overrides: str) -> str:
    with pytest.raises(ProfileError) as caught:
        loader.load("demo", overrides)
    return str(caught.value)


def test_every_connector_can_be_planned():
    assert set(CONNECTORS) == set(CHOOSE) == set(ConnectorKind)


@pytest.mark.parametrize("kind", ConnectorKind)
def test_both_sides_agree_and_have_their_roles(kind):
    prefill, decode = configs(kind)
    roles = {"prefill": "kv_producer", "decode": "kv_consumer"}
    assert json.loads(json.dumps(decode).replace(roles["decode"], roles["prefill"])) == prefill
    assert (prefill["kv_role"], decode["kv_role"]) == (roles["prefill"], roles["decode"])


@pytest.mark.parametrize("kind", ConnectorKind)
@pytest.mark.parametrize("policy", ["fail", "recompute"])
def test_the_failure_policy_is_always_written(kind, policy):
    for config in configs(kind, f"kv_transfer.load_failure_policy={policy}"):
        assert config["kv_load_failure_policy"] == policy


@pytest.mark.parametrize("kind", ConnectorKind)
def test_no_two_instances_share_a_port(kind):
    settled = planned(kind, *TWO_PAIRS, *ONE_GPU, machine=busy(5600, 8998, 8100))
    used = [p for e in settled.engines for p in (e.port, e.side_channel_port) if p is not None]
    assert len(set(used)) == len(used)
    assert not set(used) & {5600, 8998, 8100, settled.proxy.port}


@pytest.mark.parametrize("kind", ConnectorKind)
def test_the_proxy_is_told_the_connector(kind):
    settled = planned(kind)
    assert settled.connector is kind
    assert json.loads(settled.files[0].content)["topology"]["connector"] == kind


@pytest.mark.parametrize("kind", [ConnectorKind.NIXL_PULL, ConnectorKind.MULTI])
def test_each_data_parallel_rank_has_a_side_channel(kind):
    settled = planned(kind, *TWO_PAIRS, "roles.prefill.data_parallel=3", machine=busy(5604))
    assert [engine.side_channel_port for engine in settled.engines] == [5600, 5605, 5603, 5608]


def test_a_range_of_ports_that_runs_out_is_told():
    with pytest.raises(PlanError, match=r"ports\.side_channel: no 3 free ports in a row from 65534 to 65535: lower it"):
        planned(ConnectorKind.NIXL_PULL, "ports.side_channel=65534", "roles.prefill.data_parallel=3")


def test_pushing_engines_have_no_fixed_names():
    for config in configs(ConnectorKind.NIXL_PUSH):
        assert config["kv_connector"] == "NixlPushConnector"
        assert "engine_id" not in config


def test_files_lie_in_the_run_directory_or_where_the_profile_says():
    for kind in (ConnectorKind.SHARED_STORAGE, ConnectorKind.MULTI):
        for override, folder in (
            ((), f"{RUN_DIRECTORY}/kv"),
            (("kv_transfer.shared_storage.path=/mnt/kv",), "/mnt/kv"),
        ):
            for config in configs(kind, *override):
                child = config["kv_connector_extra_config"]["connectors"][-1]
                assert child["kv_connector"] == "ExampleConnector"
                assert child["kv_connector_extra_config"] == {"shared_storage_path": folder}


def test_of_several_connectors_decode_asks_nixl_first():
    for config in configs(ConnectorKind.MULTI, "kv_transfer.lease=60"):
        first, second = config["kv_connector_extra_config"]["connectors"]
        assert first["kv_connector_extra_config"]["kv_lease_duration"] == 60
        assert [first["kv_connector"], second["kv_connector"]] == ["NixlConnector", "ExampleConnector"]
        assert first["kv_role"] == second["kv_role"] == config["kv_role"]


@pytest.mark.parametrize("kind", [ConnectorKind.SHARED_STORAGE, ConnectorKind.MULTI])
def test_what_would_spoil_the_files_is_off(kind):
    for engine in planned(kind).engines:
        assert "--no-enable-chunked-prefill" in engine.argv
    with pytest.raises(PlanError, match=r"use the profile's key roles\.decode\.enable_chunked_prefill for it"):
        planned(kind, "roles.decode.engine_args={enable_chunked_prefill: true}")


def test_engines_with_one_lmcache_hash_alike():
    for engine in planned(ConnectorKind.LMCACHE).engines:
        assert engine.env["PYTHONHASHSEED"] == "0"
        assert options(engine.argv)["--prefix-caching-hash-algo"] == "sha256_cbor"
        extra = json.loads(options(engine.argv)["--kv-transfer-config"])["kv_connector_extra_config"]
        assert extra["lmcache.pre_caching_hash_algorithm"] == "sha256_cbor"
        assert extra["lmcache.remote_url"] == "redis://127.0.0.1:6379"


def test_only_mooncake_s_prefill_has_a_bootstrap_server():
    settled = planned(ConnectorKind.MOONCAKE, *TWO_PAIRS, *ONE_GPU)
    told = {i["name"]: i["bootstrap"] for i in json.loads(settled.files[0].content)["topology"]["instances"]}
    assert told["prefill-0"] == "http://127.0.0.1:8998"
    assert told["prefill-1"] == "http://127.0.0.1:8999"
    assert told["decode-0"] is told["decode-1"] is None
    for engine in settled.engines:
        port = engine.env.get("VLLM_MOONCAKE_BOOTSTRAP_PORT")
        assert (port is not None) == (engine.role is Role.PREFILL)
        assert port == (None if engine.side_channel_port is None else str(engine.side_channel_port))


def test_mooncake_goes_over_what_the_profile_says():
    (extra, _) = configs(ConnectorKind.MOONCAKE, "kv_transfer.mooncake={protocol: tcp, device_name: mlx5_0}")
    assert extra["kv_connector_extra_config"] == {"mooncake_protocol": "tcp", "device_name": "mlx5_0"}


def test_lmcache_needs_its_store():
    assert "needs lmcache.remote_url" in refused("kv_transfer.connector=lmcache")
    assert "kv_transfer.lmcache.remote_url: is missing" in refused("kv_transfer={connector: lmcache, lmcache: {}}")


@pytest.mark.parametrize(
    ("key", "value", "connector", "owners"),
    [
        ("lease", "60", "shared-storage", "multi or nixl-pull or nixl-push"),
        ("shared_storage", "{path: /x}", "nixl-pull", "multi or shared-storage"),
        ("lmcache", "{remote_url: x}", "nixl-push", "lmcache"),
        ("mooncake", "{protocol: tcp}", "nixl-pull", "mooncake"),
    ],
)
def test_a_key_of_another_connector_is_refused(key, value, connector, owners):
    message = refused(f"kv_transfer={{connector: {connector}, {key}: {value}}}")
    assert f"{key} belongs to {owners}, not to {connector}" in message


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("NixlConnector", "nixl-pull"),
        ("NixlPushConnector", "nixl-push"),
        ("ExampleConnector", "shared-storage"),
        ("SharedStorageConnector", "shared-storage"),
        ("MooncakeConnector", "mooncake"),
        ("LMCacheConnectorV1", "lmcache"),
        ("MultiConnector", "multi"),
        ("PyNcclConnector", "nixl-pull"),
        ("P2pNcclConnector", "nixl-pull"),
    ],
)
def test_the_engine_s_name_of_a_connector_is_answered_with_ours(name, ours):
    message = refused(f"kv_transfer.connector={name}")
    assert f"kv_transfer.connector: write {ours}" in message
    assert message.endswith(f'not "{name}"')


@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        (ConnectorKind.NIXL_PULL, "VLLM_NIXL_SIDE_CHANNEL_PORT"),
        (ConnectorKind.NIXL_PUSH, "VLLM_NIXL_SIDE_CHANNEL_HOST"),
        (ConnectorKind.MOONCAKE, "VLLM_MOONCAKE_BOOTSTRAP_PORT"),
        (ConnectorKind.LMCACHE, "PYTHONHASHSEED"),
    ],
)
def test_what_fits_the_instances_together_cannot_be_changed_for_one(kind, variable):
    with pytest.raises(PlanError, match=rf"roles\.prefill\.env\.{variable}: Duet sets it itself"):
        planned(kind, f'roles.prefill.env={{{variable}: "1"}}')
