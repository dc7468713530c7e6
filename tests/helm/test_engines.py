"""Engines' pods are the plan's."""

import json
from typing import Any

import pytest

from tests.helm import situations
from tests.helm.charts import PROFILES, Helm, Manifest, engines, of_kind, plan, ports
from tests.helm.conftest import Rendered


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


def test_a_download_is_another_job_when_it_is_another_download(helm: Helm):
    def job(**more: Any) -> Manifest:
        values = situations.everything("api-throughput") | more
        [found] = of_kind(helm.template(values), "Job")
        return found

    [container] = job()["spec"]["template"]["spec"]["containers"]
    assert container["command"][:3] == ["hf", "download", plan("api-throughput")["model"]["name"]]
    names = {job()["metadata"]["name"], job()["metadata"]["name"], job(profile="batch-cost")["metadata"]["name"]}
    assert len(names) == 2
