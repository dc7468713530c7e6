"""The image that the Dockerfile builds, see :mod:`tests.cluster.images`."""

import pytest

from tests.cluster.site import SMALL

MOST = 450
"""MiB that the project and what it needs may take, on top of the base."""


@pytest.fixture(autouse=True)
def _images(own_cluster) -> None:
    """Built before the tests."""


async def test_the_image_serves_as_nobody_with_a_read_only_root(release, fakes, client):
    values = fakes()
    values["proxy"] = {"image": {"repository": "localhost/duet-test", "tag": "dev", "pullPolicy": "Never"}, **SMALL}
    release.install(values)
    proxy = client()
    await release.hands_over(proxy)
    answer = await proxy.post("/v1/completions", json={"model": "fake", "prompt": "one two three", "max_tokens": 2})
    assert answer.headers["x-duet-path"] == "pd"
    assert "proven" in release.helm("test", "pd", "--logs")
    (name,) = release.names("proxy")
    assert release.kubectl("exec", name, "--", "id", "-u").strip() == "2000"
    assert "unlimited" not in release.kubectl("exec", name, "--", "launcher", "list")
    kilobytes = int(release.kubectl("exec", name, "--", "du", "-sk", "/opt/duet").split()[0])
    assert kilobytes / 1024 < MOST


async def test_engines_by_script_come_from_it_for_clusters_that_only_run_images(release, fakes, client):
    values = fakes()
    of_tests = {"image": {"repository": "localhost/duet-test-fakes", "tag": "dev", "pullPolicy": "Never"}, **SMALL}
    for engine in values["plan"]["engines"].values():
        engine["command"] = ["python", "-m", "tests.fakes.engine"]
    values["engine"] = {**of_tests, "python": "python", "extraEnv": [{"name": "FAKE_ENGINE_PACE", "value": "0.01"}]}
    values["proxy"] = of_tests
    release.install(values)
    proxy = client()
    await release.hands_over(proxy)
