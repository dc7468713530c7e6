"""What a KV connector needs on both sides."""

import json

import pytest

from launcher.kv_transfer import CONNECTORS
from proxy.topology import ConnectorKind
from tests.launcher.builders import options, plan


def configs(*args):
    return [json.loads(options(engine.argv)["--kv-transfer-config"]) for engine in plan(*args).engines]


def test_every_connector_has_a_setup():
    assert set(CONNECTORS) == set(ConnectorKind)


@pytest.mark.parametrize(("name", "device"), [("demo", "cpu"), ("api-throughput", "cuda"), ("batch-cost", "cuda")])
def test_both_sides_agree_and_have_their_roles(name, device):
    prefill, decode = configs(name)
    assert (prefill.pop("kv_role"), decode.pop("kv_role")) == ("kv_producer", "kv_consumer")
    assert prefill == decode
    assert prefill["kv_connector"] == "NixlConnector"
    assert prefill["kv_buffer_device"] == device


@pytest.mark.parametrize(
    ("override", "policy"),
    [((), "fail"), (("kv_transfer.load_failure_policy=recompute",), "recompute")],
)
def test_the_failure_policy_is_always_written(override, policy):
    assert [config["kv_load_failure_policy"] for config in configs("demo", *override)] == [policy, policy]


def test_the_lease_reaches_both_sides():
    for config in configs("demo", "kv_transfer.lease=60"):
        assert config["kv_connector_extra_config"] == {"kv_lease_duration": 60, "num_threads": 1}


def test_the_side_channel_of_the_plan_is_the_one_of_the_environment():
    for engine in plan("demo", "roles.prefill.replicas=2").engines:
        assert engine.env["VLLM_NIXL_SIDE_CHANNEL_PORT"] == str(engine.side_channel_port)


def test_the_transport_is_chosen_only_on_a_cpu():
    assert plan("demo").engines[0].env["UCX_NET_DEVICES"] == "lo"
    assert "UCX_TLS" not in plan("api-throughput").engines[0].env
