"""Pods that need all devices there are: one goes before the next comes."""

import asyncio

import pytest

from tests.cluster.traffic import traffic

pytestmark = pytest.mark.disturbing
RESOURCE = "nvidia.com/gpu"


@pytest.fixture
def four_devices(own_cluster):
    """The node says that it has so many GPUs."""
    own_cluster.of_cluster("fake-gpu", "4")
    yield
    own_cluster.of_cluster("fake-gpu", "0")


def on_devices(values, count):
    for engine in values["plan"]["engines"].values():
        engine["devices"] = {"resource": RESOURCE, "count": count}
    return values


async def test_a_new_version_goes_through_though_all_devices_are_taken(four_devices, release, fakes, client):
    two = ("roles.prefill.replicas=2", "roles.decode.replicas=2")
    release.install(on_devices(fakes(*two), 1))
    proxy = client()
    await release.hands_over(proxy, 4)
    old = {*release.names("prefill"), *release.names("decode")}
    async with traffic(release.url()) as load:
        new = fakes(*two, "roles.decode.max_num_seqs=7", "roles.prefill.max_num_seqs=7")
        await asyncio.to_thread(release.install, on_devices(new, 1))
        await release.hands_over(proxy, 4)
        await load.more()
    assert not load.hurt()
    assert not old & {*release.names("prefill"), *release.names("decode")}


async def test_what_finds_no_device_waits_and_the_rest_serves(four_devices, release, fakes, client):
    release.install(on_devices(fakes("roles.decode.replicas=3"), 2), wait=False)
    proxy = client()

    async def phases():
        pods = await asyncio.to_thread(release.pods, "decode")
        return sorted(pod["status"]["phase"] for pod in pods)

    await release.until(phases, ["Pending", "Pending", "Running"], "decode pods")
    await release.hands_over(proxy, 1)
    answer = await proxy.post("/v1/completions", json={"model": "fake", "prompt": "one two", "max_tokens": 2})
    assert answer.headers["x-duet-path"] == "pd"
