"""What refers to something refers to something that is there, and pods are what they should be."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.config import ProxyConfig, load
from tests.helm import charts, situations
from tests.helm.charts import (
    PROFILES,
    RELEASE,
    Helm,
    Manifest,
    engines,
    matches,
    named,
    of_kind,
    plan,
    pods,
    ports,
    selected,
)

_SITUATIONS = situations.all_of_them()


class Rendered:
    """All situations, each when it is asked for."""

    def __init__(self, helm: Helm) -> None:
        self._helm = helm
        self._known: dict[str, list[Manifest]] = {}

    def __getitem__(self, situation: str) -> list[Manifest]:
        if situation not in self._known:
            self._known[situation] = self._helm.template(_SITUATIONS[situation])
        return self._known[situation]


@pytest.fixture(scope="module")
def rendered(helm: Helm) -> Rendered:
    """All situations."""
    return Rendered(helm)


@pytest.fixture(params=_SITUATIONS)
def manifests(rendered: Rendered, request: pytest.FixtureRequest) -> list[Manifest]:
    """One situation after the other."""
    return rendered[request.param]


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


def test_a_scaler_alone_owns_the_number_of_its_instances(rendered: Rendered):
    for situation in ("hpa", "hpa, aggregated", "keda", "guarded and scaled"):
        manifests = rendered[situation]
        scalers = of_kind(manifests, "HorizontalPodAutoscaler", "ScaledObject")
        targets = {scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers}
        owned = {
            each["metadata"]["name"] for each in of_kind(manifests, "Deployment") if "replicas" not in each["spec"]
        }
        assert targets == owned == {f"pd-{role}" for role in engines(manifests)}
    for situation in _SITUATIONS.keys() - {"hpa", "hpa, aggregated", "keda", "guarded and scaled"}:
        manifests = rendered[situation]
        assert not of_kind(manifests, "HorizontalPodAutoscaler", "ScaledObject")
        assert all("replicas" in each["spec"] for each in of_kind(manifests, "Deployment", "LeaderWorkerSet"))


def test_a_plans_bounds_hold_where_none_are_given(rendered: Rendered):
    spec = named(rendered["guarded and scaled"], "HorizontalPodAutoscaler", "pd-prefill")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    assert spec["metrics"][0]["pods"]["metric"]["name"] == "vllm_num_requests_waiting"


def test_keda_asks_for_what_the_proxy_tells_of_this_deployment_and_role(rendered: Rendered):
    [trigger] = named(rendered["keda"], "ScaledObject", "pd-decode")["spec"]["triggers"]
    assert trigger["metadata"]["query"] == (
        'sum(max by (engine, rank) (duet_engine_kv_cache_usage_ratio{job="duet-pd",namespace="llm",role="decode"}))'
    )


def test_budgets_are_where_there_are_several(rendered: Rendered):
    def budgets(situation: str) -> set[str]:
        return {each["metadata"]["name"] for each in of_kind(rendered[situation], "PodDisruptionBudget")}

    assert budgets("plain api-throughput") == set()
    assert budgets("everything api-throughput") == {"pd-prefill", "pd-decode", "pd-proxy"}


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


def test_pods_have_no_more_rights_than_they_need(manifests: list[Manifest]):
    for pod in pods(manifests):
        spec = pod["spec"]
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        assert spec["automountServiceAccountToken"] == (component == "proxy")
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostIPC", "hostPID"} & spec.keys()
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"]["drop"] == ["ALL"]
            assert set(security["capabilities"].get("add", [])) <= {"IPC_LOCK"}


def test_the_proxy_may_do_nothing_but_follow_pods(rendered: Rendered):
    manifests = rendered["plain demo"]
    assert [each["rules"] for each in of_kind(manifests, "Role")] == [
        [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    ]
    assert not of_kind(manifests, "ClusterRole", "ClusterRoleBinding")
    [binding] = of_kind(manifests, "RoleBinding")
    assert [(each["kind"], each["name"]) for each in binding["subjects"]] == [("ServiceAccount", "pd-proxy")]


@pytest.mark.parametrize("profile", PROFILES)
def test_engines_are_the_plans(rendered: Rendered, profile: str):
    wanted = plan(profile)["engines"]
    pods_by_role = engines(rendered[f"plain {profile}"])
    assert pods_by_role.keys() == wanted.keys()
    for role, pod in pods_by_role.items():
        engine, [container] = wanted[role], pod["spec"]["containers"]
        assert (container["command"], container["args"]) == (engine["command"], engine["args"])
        names = [each["name"] for each in container["env"]]
        assert names[0] == "POD_IP", "others refer to it"
        assert len(names) == len(set(names))
        assert engine["env"].items() <= {each["name"]: each.get("value") for each in container["env"]}.items()
        assert json.loads(pod["metadata"]["annotations"]["duet/facts"]) == engine["facts"]
        assert container["name"] == "engine"
        assert ports(pod)["http"] == engine["port"]
        devices = engine["devices"]
        limits = container["resources"]["limits"]
        assert limits == ({} if devices is None else {devices["resource"]: str(devices["count"])})


def test_pods_end_before_they_are_killed(rendered: Rendered):
    for profile in PROFILES:
        for pod in engines(rendered[f"plain {profile}"]).values():
            hook = pod["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
            assert int(hook[hook.index("--within") + 1]) + 10 < pod["spec"]["terminationGracePeriodSeconds"]


def test_the_proxy_ends_before_it_is_killed(rendered: Rendered, helm: Helm):
    for profile in PROFILES:
        proxy = named(rendered[f"plain {profile}"], "Deployment", "pd-proxy")["spec"]["template"]["spec"]
        drain = json.loads(plan(profile)["proxy"]["config"])["settings"]["drain"]
        assert 5 + drain + 1 < proxy["terminationGracePeriodSeconds"]


def test_a_rollout_may_take_as_long_as_a_start(manifests: list[Manifest]):
    deadlines = {
        each["metadata"]["name"]: each["spec"]["progressDeadlineSeconds"] for each in of_kind(manifests, "Deployment")
    }
    assert deadlines["pd-proxy"] >= max(deadlines.values())
    for pod in engines(manifests).values():
        probe = pod["spec"]["containers"][0]["startupProbe"]
        role = pod["metadata"]["labels"]["duet/role"]
        assert probe["periodSeconds"] * probe["failureThreshold"] < deadlines.get(f"pd-{role}", float("inf"))


def test_the_proxys_configuration_finds_the_engines_of_its_release(rendered: Rendered, tmp_path: Path):
    for profile in PROFILES:
        manifests = rendered[f"plain {profile}"]
        file = tmp_path / "proxy.json"
        file.write_text(named(manifests, "ConfigMap", "pd-proxy")["data"]["proxy.json"])
        config: ProxyConfig = load(file)
        assert config.discovery is not None
        labels = dict(each.split("=") for each in config.discovery.selector.split(",") if "=" in each)
        exist = [each for each in config.discovery.selector.split(",") if "=" not in each]
        for pod in pods(manifests):
            has = pod["metadata"]["labels"]
            found = labels.items() <= has.items() and all(each in has for each in exist)
            assert found == ("duet/role" in has)


def test_the_proxy_is_asked_where_it_answers(rendered: Rendered):
    def probes(situation: str) -> list[Any]:
        [container] = named(rendered[situation], "Deployment", "pd-proxy")["spec"]["template"]["spec"]["containers"]
        return [container[f"{kind}Probe"]["httpGet"] for kind in ("readiness", "liveness")]

    assert probes("plain demo") == [
        {"path": "/ready", "port": "http", "scheme": "HTTP"},
        {"path": "/health", "port": "http", "scheme": "HTTP"},
    ]
    # The operators' address speaks no TLS.
    assert probes("guarded") == [
        {"path": "/ready", "port": "admin"},
        {"path": "/health", "port": "http", "scheme": "HTTPS"},
    ]


def test_clients_and_operators_have_different_services(rendered: Rendered):
    by_name = {each["metadata"]["name"]: each["spec"] for each in of_kind(rendered["guarded"], "Service")}
    assert [port["name"] for port in by_name["pd-proxy"]["ports"]] == ["http"]
    assert by_name["pd-proxy-admin"]["type"] == "ClusterIP"


def _revision(helm: Helm, values: dict[str, Any]) -> set[str]:
    return {pod["metadata"]["labels"]["duet/revision"] for pod in engines(helm.template(values)).values()}


def test_what_a_pair_shares_makes_its_revision_and_nothing_else(helm: Helm):
    base = _revision(helm, situations.plain("api-throughput"))
    assert len(base) == 1
    same = [{"replicas": 3}, {"resources": {"limits": {"memory": "1Gi"}}}, {"podLabels": {"a": "b"}}]
    other = [{"image": {"tag": "v0.33.0"}}, {"extraEnv": [{"name": "A", "value": "b"}]}, {"extraArgs": ["--seed=1"]}]
    assert all(_revision(helm, situations.plain("api-throughput") | {"engine": each}) == base for each in same)
    revisions = [_revision(helm, situations.plain("api-throughput") | {"prefill": each}) for each in other]
    assert all(len(each) == 1 and each != base for each in revisions)


def test_a_new_chart_alone_starts_no_engine_anew(rendered: Rendered):
    for pod in engines(rendered["everything api-throughput"]).values():
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & pod["metadata"]["labels"].keys()


def test_names_of_pods_are_short_enough_whatever_the_release_is_called(helm: Helm):
    longest = "a-release.with-dots.and-a-name-as-long-as-helm-lets-it"[:53]
    manifests = helm.template(situations.plain("interactive"), release=longest)
    for each in of_kind(manifests, "Deployment"):
        name = each["metadata"]["name"]
        assert "." not in name
        assert len(f"{name}-0123456789-abcde") <= 63
    assert all(len(each["metadata"]["name"]) <= 63 for each in manifests)


def test_several_machines_share_one_instance(rendered: Rendered):
    [group] = of_kind(rendered["several machines"], "LeaderWorkerSet")
    template = group["spec"]["leaderWorkerTemplate"]
    assert template["size"] == 2
    leader, worker = (template[f"{part}Template"] for part in ("leader", "worker"))
    assert leader["metadata"]["labels"]["duet/role"] == "decode"
    assert "duet/role" not in worker["metadata"]["labels"]
    [container] = worker["spec"]["containers"]
    assert container["args"] == ["--headless"]
    assert not {"ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle"} & container.keys()


def test_what_is_given_wins_over_all(helm: Helm):
    given = {
        "extraEnv": [{"name": "HF_HOME", "value": "/elsewhere"}, {"name": "VLLM_NO_USAGE_STATS", "value": "0"}],
        "extraContainerSpec": {"livenessProbe": {"periodSeconds": 99}, "stdin": True},
        "extraPodSpec": {"dnsConfig": {"nameservers": ["10.0.0.1"]}, "terminationGracePeriodSeconds": 7},
    }
    pod = engines(helm.template(situations.plain("api-throughput") | {"decode": given}))["decode"]
    [container] = pod["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert (env["HF_HOME"], env["VLLM_NO_USAGE_STATS"]) == ("/elsewhere", "0")
    assert len(env) == len(container["env"])
    assert container["livenessProbe"]["periodSeconds"] == 99
    assert container["livenessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert pod["spec"]["terminationGracePeriodSeconds"] == 7


def test_where_the_cluster_chooses_the_user_none_is_named(helm: Helm):
    none = {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}}
    for pod in pods(helm.template(situations.plain("demo") | {"engine": none, "proxy": none})):
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["spec"]["securityContext"].keys()
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True


def test_extra_objects_may_be_templates(helm: Helm):
    extra = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}},
        "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}-secret'}\n",
    ]
    manifests = helm.template(situations.plain("demo") | {"extraObjects": extra})
    assert named(manifests, "ConfigMap", "pd-more")
    assert named(manifests, "Secret", "pd-secret")


def test_a_download_is_another_job_when_it_is_another_download(helm: Helm):
    def job(**more: Any) -> Manifest:
        values = situations.everything("api-throughput") | more
        [found] = of_kind(helm.template(values), "Job")
        return found

    [container] = job()["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["hf", "download", plan("api-throughput")["model"]["name"]]
    names = {job()["metadata"]["name"], job()["metadata"]["name"], job(profile="batch-cost")["metadata"]["name"]}
    assert len(names) == 2


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
