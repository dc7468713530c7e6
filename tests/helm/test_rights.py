"""What pods may do."""

from tests.helm import situations
from tests.helm.charts import Helm, Manifest, of_kind, pods
from tests.helm.conftest import Rendered


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


def test_where_the_cluster_chooses_the_user_none_is_named(helm: Helm):
    none = {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}}
    for pod in pods(helm.template(situations.plain("demo") | {"engine": none, "proxy": none})):
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["spec"]["securityContext"].keys()
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
