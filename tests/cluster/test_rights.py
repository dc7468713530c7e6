"""What the proxy may do in the cluster, and what it says when it may not."""

import json

import pytest

from tests.cluster.site import Refused, Site


@pytest.mark.parametrize(
    ("verb", "what", "may"),
    [
        ("list", "pods", "yes"),
        ("watch", "pods", "yes"),
        ("delete", "pods", "no"),
        ("get", "secrets", "no"),
        ("list", "configmaps", "no"),
        ("create", "pods/exec", "no"),
        ("list", "nodes", "no"),
    ],
)
def test_the_proxy_may_see_pods_and_nothing_else(site: Site, installed, verb, what, may):
    who = f"system:serviceaccount:{installed.namespace}:pd-proxy"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": who,
            "resourceAttributes": {
                "namespace": installed.namespace,
                "verb": verb,
                "resource": what.partition("/")[0],
                "subresource": what.partition("/")[2],
            },
        },
    }
    told = json.loads(site.run("kubectl", "create", "-f", "-", "-o", "json", text=json.dumps(review)))
    assert told["status"]["allowed"] is (may == "yes")


def test_engines_have_no_rights_at_all(installed):
    for role in ("prefill", "decode"):
        (pod,) = installed.pods(role)
        assert pod["spec"]["automountServiceAccountToken"] is False
        mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
        assert not [path for path in mounts if "serviceaccount" in path]


def test_pods_run_as_nobody_in_particular(installed):
    for component in ("prefill", "decode", "proxy"):
        (name,) = installed.names(component)
        assert installed.kubectl("exec", name, "--", "id", "-u").strip() == "2000"
        with pytest.raises(Refused, match="Read-only file system"):
            installed.kubectl("exec", name, "--", "touch", "/here")


async def test_a_proxy_that_may_not_see_pods_says_so(release, fakes):
    release.install({**fakes(), "rbac": {"create": False}}, wait=False)

    async def log():
        text = release.kubectl("logs", "deployment/pd-proxy")
        return "the proxy may not see pods in the namespace" in text and "get, list and watch on pods" in text

    await release.until(log, True, "the proxy's log")
