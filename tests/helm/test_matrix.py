"""What the chart renders is accepted by each version of Kubernetes, for each shipped profile and each switch."""

import pytest

from tests.helm import kubernetes, situations
from tests.helm.charts import PROFILES, Helm, Manifest, Refused, of_kind, pods

_SITUATIONS = situations.all_of_them()


def _check(manifests: list[Manifest], version: str) -> None:
    faults = [fault for each in manifests for fault in kubernetes.faults(each, version)]
    assert not faults, "\n".join(faults)
    known = [(each["kind"], each["metadata"]["name"]) for each in manifests]
    assert len(known) == len(set(known)), "two objects of one name"
    assert {each["metadata"]["namespace"] for each in manifests} == {"llm"}


@pytest.mark.parametrize("situation", _SITUATIONS)
def test_each_switch(helm: Helm, situation: str):
    _check(helm.template(_SITUATIONS[situation], kubernetes="1.25.0"), "1.25.0")


@pytest.mark.parametrize("version", kubernetes.versions())
def test_each_version(helm: Helm, version: str):
    _check(helm.template(situations.scaled("api-throughput", "hpa"), kubernetes=version), version)


def test_both_helms_render_the_same(helm: Helm, each_helm: Helm):
    values = situations.scaled("api-throughput", "keda")
    assert each_helm.template(values) == helm.template(values)


@pytest.mark.parametrize("profile", PROFILES)
def test_both_helms_have_nothing_to_say(each_helm: Helm, profile: str):
    each_helm.lint(situations.plain(profile))
    each_helm.lint(situations.everything(profile))


def test_old_clusters_get_old_apis(helm: Helm):
    values = situations.everything("api-throughput") | {"engine": {"autoscaling": {"kind": "hpa", "min": 1, "max": 2}}}
    by_version = {
        version: {
            each["apiVersion"]
            for each in of_kind(
                helm.template(values, kubernetes=version), "PodDisruptionBudget", "HorizontalPodAutoscaler"
            )
        }
        for version in ("1.20.2", "1.21.0", "1.23.0-gke.100")
    }
    assert by_version == {
        "1.20.2": {"policy/v1beta1", "autoscaling/v2beta2"},
        "1.21.0": {"policy/v1", "autoscaling/v2beta2"},
        "1.23.0-gke.100": {"policy/v1", "autoscaling/v2"},
    }


def test_older_clusters_than_that_are_refused(helm: Helm):
    with pytest.raises(Refused, match="incompatible with Kubernetes"):
        helm.template(situations.plain("demo"), kubernetes="1.19.0")


def test_several_machines_need_an_operator(helm: Helm):
    with pytest.raises(Refused, match=r"decode\.nodes: an instance spans 2 machines, which needs LeaderWorkerSet"):
        helm.template(situations.on_several_machines(), apis=())


@pytest.mark.parametrize("kind", ["Deployment", "Service", "ServiceMonitor", "LeaderWorkerSet"])
def test_the_check_finds_an_unknown_field(helm: Helm, kind: str):
    manifests = helm.template(situations.on_several_machines())
    wrong = of_kind(manifests, kind)[0]
    assert not list(kubernetes.faults(wrong, "1.30.0"))
    pod = next(iter(pods([wrong])), wrong)
    pod["spec"]["typo"] = 1
    assert any("typo" in fault for fault in kubernetes.faults(wrong, "1.30.0"))
