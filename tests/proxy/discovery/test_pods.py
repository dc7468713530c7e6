"""Pods become instances."""

import pytest

from proxy.discovery.pods import topology_of
from proxy.topology import ConnectorKind, Role
from tests.proxy.discovery.builders import facts, pod

NIXL = ConnectorKind.NIXL_PULL


def test_a_running_pod_is_an_instance_with_what_is_known_of_it():
    known = pod("pd-prefill-1", "prefill", facts=facts(dtype="bfloat16"), revision="abc")
    (instance,) = topology_of([known], NIXL)[0].instances
    assert (instance.name, instance.role, instance.url) == ("pd-prefill-1", Role.PREFILL, "http://10.0.0.1:8100")
    assert instance.fingerprint == {"dtype": "bfloat16", "revision": "abc"}


def test_an_address_of_version_6_is_written_in_brackets():
    topology, _, _ = topology_of([pod("a", address="fd00::7")], NIXL)
    assert topology.instances[0].url == "http://[fd00::7]:8100"


def test_mooncake_s_prefill_has_a_bootstrap_server():
    topology, _, _ = topology_of([pod("p", "prefill"), pod("d")], ConnectorKind.MOONCAKE)
    assert {each.name: each.bootstrap for each in topology.instances} == {"p": "http://10.0.0.1:5600", "d": None}


@pytest.mark.parametrize(
    "missing", [{"address": None}, {"phase": "Pending"}, {"phase": "Succeeded"}, {"phase": "Failed"}]
)
def test_a_pod_that_does_not_run_is_none(missing):
    assert topology_of([pod("a", **missing)], NIXL) == (topology_of([], NIXL)[0], (), ())


@pytest.mark.parametrize("state", [{"ready": False}, {"ends": True}])
def test_a_pod_that_ends_or_is_not_ready_gets_nothing_new_and_stays(state):
    topology, draining, _ = topology_of([pod("a", **state), pod("b")], NIXL)
    assert [each.name for each in topology.instances] == ["a", "b"]
    assert draining == ("a",)


@pytest.mark.parametrize(
    ("strange", "said"),
    [
        (pod("a", "router"), "pod a: label duet/role is 'router': one of prefill, decode, aggregated is needed"),
        (pod("a", facts="{"), "pod a: annotation duet/facts is no JSON object of texts: {"),
        (pod("a", facts='{"dtype": 1}'), "pod a: annotation duet/facts is no JSON object of texts"),
        (pod("a" * 65), "its name is longer than 64 letters: choose a shorter name for the release"),
    ],
)
def test_a_pod_that_cannot_be_one_is_named_and_the_others_serve(strange, said):
    topology, _, faults = topology_of([strange, pod("b")], NIXL)
    assert [each.name for each in topology.instances] == ["b"]
    assert said in faults[0]


def test_a_pod_without_the_port_is_named():
    strange = pod("a")
    strange["spec"]["containers"].pop()
    assert topology_of([strange], NIXL)[2] == ("pod a: no container has a port named http",)


def test_the_order_of_the_api_server_does_not_matter():
    one, two = pod("a"), pod("b", "prefill")
    assert topology_of([one, two], NIXL) == topology_of([two, one], NIXL)
