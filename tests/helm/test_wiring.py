"""What refers to something refers to something that is there."""

import json
from pathlib import Path

import yaml

from tests.helm import charts, situations
from tests.helm.charts import RELEASE, Helm, Manifest, matches, named, of_kind, pods, ports, selected
from tests.helm.conftest import Rendered


def test_selectors_hit_the_pods_they_mean(manifests: list[Manifest]):
    for each in of_kind(manifests, "Service", "PodDisruptionBudget", "PodMonitor", "Deployment", "NetworkPolicy"):
        spec = each["spec"]
        selector = {"matchLabels": spec["selector"]} if each["kind"] == "Service" else spec.get("selector")
        hit = selected(manifests, selector or spec["podSelector"])
        component = each["metadata"]["labels"]["app.kubernetes.io/component"]
        expected = {"prefill", "decode", "aggregated"} if each["kind"] == "PodMonitor" else {component}
        assert hit, each["metadata"]["name"]
        assert {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in hit} <= expected


def test_budgets_and_services_see_only_engines_that_serve(manifests: list[Manifest]):
    for each in of_kind(manifests, "Service", "PodDisruptionBudget", "PodMonitor"):
        selector = each["spec"]["selector"]
        for pod in selected(manifests, {"matchLabels": selector} if each["kind"] == "Service" else selector):
            assert "http" in ports(pod), each["metadata"]["name"]


def test_services_and_monitors_name_ports_that_are_there(manifests: list[Manifest]):
    for service in of_kind(manifests, "Service"):
        for port in service["spec"]["ports"]:
            assert port["protocol"] == "TCP"
            assert all(
                port["targetPort"] in ports(pod)
                for pod in selected(manifests, {"matchLabels": service["spec"]["selector"]})
            )
    for monitor in of_kind(manifests, "ServiceMonitor"):
        seen = [
            {port["name"] for port in service["spec"]["ports"]}
            for service in of_kind(manifests, "Service")
            if matches(service["metadata"]["labels"], monitor["spec"]["selector"])
        ]
        endpoints = [(each["port"], each["path"]) for each in monitor["spec"]["endpoints"]]
        assert sorted(path for _, path in endpoints) == ["/metrics", "/metrics/engines"]
        # Of two Services of the same pods only one is asked, or everything would count twice.
        assert all(sum(port in names for names in seen) == 1 for port, _ in endpoints)
        assert {
            (rule["targetLabel"], rule["replacement"])
            for each in monitor["spec"]["endpoints"]
            for rule in each["relabelings"]
        } == {("job", f"duet-{RELEASE}"), ("metrics_path", "/metrics"), ("metrics_path", "/metrics/engines")}


def test_volumes_secrets_and_accounts_are_those_of_the_release_or_given(manifests: list[Manifest]):
    made = {(each["kind"], each["metadata"]["name"]) for each in manifests}
    given = {("PersistentVolumeClaim", name) for name in ("models", "kv")} | {("Secret", "certificate")}
    for pod in pods(manifests):
        spec = pod["spec"]
        for volume in spec.get("volumes", []):
            reference = {
                ("ConfigMap", volume.get("configMap", {}).get("name")),
                ("PersistentVolumeClaim", volume.get("persistentVolumeClaim", {}).get("claimName")),
                ("Secret", volume.get("secret", {}).get("secretName")),
            } - {(kind, None) for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret")}
            assert reference <= made | given, volume
        mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}
        if "serviceAccountName" in spec:
            assert ("ServiceAccount", spec["serviceAccountName"]) in made


def test_clients_and_operators_have_different_services(rendered: Rendered):
    by_name = {each["metadata"]["name"]: each["spec"] for each in of_kind(rendered["guarded"], "Service")}
    assert [port["name"] for port in by_name["pd-proxy"]["ports"]] == ["http"]
    assert by_name["pd-proxy-admin"]["type"] == "ClusterIP"


def test_names_of_pods_are_short_enough_whatever_the_release_is_called(helm: Helm):
    longest = "a-release.with-dots.and-a-name-as-long-as-helm-lets-it"[:53]
    manifests = helm.template(situations.plain("interactive"), release=longest)
    for each in of_kind(manifests, "Deployment"):
        name = each["metadata"]["name"]
        assert "." not in name
        assert len(f"{name}-0123456789-abcde") <= 63
    assert all(len(each["metadata"]["name"]) <= 63 for each in manifests)


def test_extra_objects_may_be_templates(helm: Helm):
    extra = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}},
        "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}-secret'}\n",
    ]
    manifests = helm.template(situations.plain("demo") | {"extraObjects": extra})
    assert named(manifests, "ConfigMap", "pd-more")
    assert named(manifests, "Secret", "pd-secret")


def test_rules_and_dashboards_are_the_files(rendered: Rendered):
    manifests = rendered["everything demo"]
    [rules] = of_kind(manifests, "PrometheusRule")
    assert rules["spec"] == yaml.safe_load((charts.CHART / "files/alerts.yaml").read_text())
    dashboards = [each for each in of_kind(manifests, "ConfigMap") if "grafana_dashboard" in each["metadata"]["labels"]]
    assert len(dashboards) == 5
    assert all(json.loads(text)["uid"] for each in dashboards for text in each["data"].values())


def test_the_notes_say_what_to_do_next(home: Path):
    # Helm 3 asks a cluster for them.
    notes = charts.helm("helm4", home).notes(situations.plain("demo"))
    assert "kubectl --namespace llm port-forward service/pd-proxy 8000:8000" in notes
    assert "helm test pd --namespace llm --logs" in notes
    assert "smollm2" in notes
