"""Network policies let through what is needed, and no more."""

from itertools import chain
from typing import Any

from tests.helm.charts import RELEASE, Manifest, matches, named, of_kind, pods, ports, selected
from tests.helm.conftest import Rendered


def test_network_policies_let_through_what_is_needed(rendered: Rendered):
    for situation, operators in (("everything api-throughput", False), ("guarded", True)):
        manifests = rendered[situation]
        prefill, decode, proxy = (
            named(manifests, "NetworkPolicy", f"pd-{part}") for part in ("prefill", "decode", "proxy")
        )
        http, admin = {"port": "http", "protocol": "TCP"}, {"port": "admin", "protocol": "TCP"}
        for policy in (prefill, decode):
            assert http in _let_in(manifests, policy, "proxy")
            assert ({"port": "side-channel", "protocol": "TCP"} in _let_in(manifests, policy, "proxy")) == operators
            for role in ("prefill", "decode"):
                assert {"protocol": "TCP"} in _let_in(manifests, policy, role), "KV goes through any port"
                assert {"protocol": "TCP"} in _let_out(manifests, policy, role)
            assert not _let_in(manifests, policy, "test")
        assert http in _let_in(manifests, proxy, "test")
        assert (admin in _let_in(manifests, proxy, "test")) == operators
        assert {"port": 8100, "protocol": "TCP"} in _let_out(manifests, proxy, "decode")
        assert {"port": 6443, "protocol": "TCP"} in [
            port for rule in proxy["spec"]["egress"] if "to" not in rule for port in rule["ports"]
        ]


def _let_in(manifests: list[Manifest], policy: Manifest, component: str) -> list[Any]:
    return _ports(manifests, policy["spec"]["ingress"], "from", component)


def _let_out(manifests: list[Manifest], policy: Manifest, component: str) -> list[Any]:
    return _ports(manifests, policy["spec"]["egress"], "to", component)


def _ports(manifests: list[Manifest], rules: list[Any], side: str, component: str) -> list[Any]:
    label = {"app.kubernetes.io/component": component}
    [pod] = [
        each
        for each in pods(manifests)
        if label.items() <= each["metadata"]["labels"].items() and "http" in ports(each)
    ] or [{"metadata": {"labels": label | {"app.kubernetes.io/name": "duet", "app.kubernetes.io/instance": RELEASE}}}]
    return list(
        chain.from_iterable(
            rule["ports"]
            for rule in rules
            if any(
                matches(pod["metadata"]["labels"], peer["podSelector"])
                for peer in rule.get(side, [])
                if "podSelector" in peer
            )
        )
    )


def test_named_ports_of_network_policies_are_there(manifests: list[Manifest]):
    for policy in of_kind(manifests, "NetworkPolicy"):
        wanted = {
            port["port"]
            for rule in policy["spec"]["ingress"]
            for port in rule["ports"]
            if isinstance(port.get("port"), str)
        }
        serving = [pod for pod in selected(manifests, policy["spec"]["podSelector"]) if ports(pod)]
        assert all(wanted <= ports(pod).keys() for pod in serving), policy["metadata"]["name"]
