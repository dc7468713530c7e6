"""Install, ask, upgrade, roll back, uninstall: by both lines of Helm."""

import pytest

ASK = {"model": "fake", "prompt": "one two three", "max_tokens": 4}


@pytest.mark.parametrize("helm", ["helm3", "helm4"])
async def test_a_release_is_installed_upgraded_rolled_back_and_removed(release, site, namespace, fakes, client, helm):
    release.by = helm
    release.install(fakes())
    proxy = client()
    await release.hands_over(proxy)
    answer = await proxy.post("/v1/completions", json=ASK)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    assert answer.headers["x-duet-prefill"] == release.names("prefill")[0]
    assert "proven" in release.helm("test", "pd", "--logs")

    before = release.names("prefill") + release.names("decode")
    release.install(fakes("model.served_name=other"))
    assert not set(before) & {*release.names("prefill"), *release.names("decode")}
    await release.hands_over(proxy)
    answer = await proxy.post("/v1/completions", json=ASK | {"model": "other"})
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")

    release.helm("rollback", "pd", "1")
    release.rolled_out()
    await release.hands_over(proxy)
    assert (await proxy.post("/v1/completions", json=ASK)).status_code == 200

    release.helm("uninstall", "pd", "--wait")
    left = site.get("all,configmap,secret,serviceaccount,role,rolebinding,pdb", "--namespace", namespace)["items"]
    ours = [each["kind"] + "/" + each["metadata"]["name"] for each in left if "pd-" in each["metadata"]["name"]]
    assert not [name for name in ours if not name.startswith(("Pod/", "ReplicaSet/", "ConfigMap/pd-test"))], ours
