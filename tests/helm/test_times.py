"""Starts, ends and rollouts have the time they need; the proxy is asked where it answers and finds its engines."""

import json
from pathlib import Path
from typing import Any

from proxy.config import ProxyConfig, load
from tests.helm.charts import PROFILES, Helm, Manifest, engines, named, of_kind, plan, pods
from tests.helm.conftest import Rendered


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


def test_the_proxy_is_not_killed_while_its_first_canary_may_run(rendered: Rendered):
    for profile in PROFILES:
        pod = named(rendered[f"plain {profile}"], "Deployment", "pd-proxy")["spec"]["template"]["spec"]
        [proxy] = pod["containers"]
        canary = json.loads(plan(profile)["proxy"]["config"])["settings"]["canary"]["timeout"]
        probe = proxy["startupProbe"]
        assert probe["httpGet"] == proxy["livenessProbe"]["httpGet"]
        assert probe["periodSeconds"] * probe["failureThreshold"] > 10 * canary


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
