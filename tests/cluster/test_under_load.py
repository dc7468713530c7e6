"""What clients notice while pods end, die and come, and while nobody can ask the API server."""

import asyncio

import pytest

from tests.cluster.traffic import traffic

TWO = ("roles.prefill.replicas=2", "roles.decode.replicas=2")


async def test_a_killed_prefill_hurts_nobody(release, fakes, client):
    release.install(fakes(*TWO))
    proxy = client()
    await release.hands_over(proxy, 4)
    async with traffic(release.url()) as load:
        victim = release.names("prefill")[0]
        release.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
        await load.more(40)
        await release.hands_over(proxy, 4)
        await load.more()
    assert not load.hurt()
    assert {answer.status for answer in load.answers} == {200}


async def test_a_killed_decode_hurts_what_it_was_answering_and_nothing_else(release, fakes, client):
    release.install(fakes(*TWO))
    proxy = client()
    await release.hands_over(proxy, 4)
    async with traffic(release.url()) as load:
        victim = release.names("decode")[0]
        release.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
        await load.more(40)
        await release.hands_over(proxy, 4)
        before = len(load.answers)
        await load.more()
    assert {answer.decode for answer in load.hurt()} <= {victim}
    assert len(load.hurt()) <= 6, "each client had one request in flight"
    assert not [answer for answer in load.answers[before:] if not answer.complete]
    for answer in load.hurt():
        assert "error" in answer.text, "a cut is told, and looks like no end"
        assert "[DONE]" not in answer.text


async def test_scaling_down_loses_nothing(release, fakes, client):
    release.install(fakes(*TWO))
    proxy = client()
    await release.hands_over(proxy, 4)
    async with traffic(release.url(), tokens=60) as load:
        release.kubectl("scale", "deployment/pd-decode", "deployment/pd-prefill", "--replicas=1")

        async def left():
            return [len(await asyncio.to_thread(release.pods, role)) for role in ("prefill", "decode")]

        await release.until(left, [1, 1], "pods of both roles")
        await load.more()
    assert not load.hurt()
    assert {answer.path for answer in load.answers} == {"pd"}


async def test_a_new_version_replaces_the_old_one_and_loses_nothing(release, fakes, client):
    release.install(fakes(*TWO))
    proxy = client()
    await release.hands_over(proxy, 4)
    old = {*release.names("prefill"), *release.names("decode")}
    async with traffic(release.url()) as load:
        await asyncio.to_thread(
            release.install, fakes(*TWO, "roles.decode.max_num_seqs=7", "roles.prefill.max_num_seqs=7")
        )
        await release.hands_over(proxy, 4)
        await load.more()
    assert not load.hurt()
    mixed = [a for a in load.answers if a.prefill is not None and (a.prefill in old) != (a.decode in old)]
    assert not mixed, "prefill and decode of one version work together"


async def test_another_proxy_takes_over_and_nobody_notices(release, fakes, client):
    release.install(fakes(*TWO))
    proxy = client()
    await release.hands_over(proxy, 4)
    (old,) = release.names("proxy")
    async with traffic(release.url()) as load:
        await asyncio.to_thread(release.install, fakes(*TWO, "proxy.retry.attempts=2"))

        async def left():
            return old in [pod["metadata"]["name"] for pod in await asyncio.to_thread(release.pods, "proxy")]

        await release.until(left, False, "whether the old proxy is there")
        await load.more()
    assert not load.hurt()
    assert {answer.status for answer in load.answers} == {200}


@pytest.mark.disturbing
async def test_without_the_api_server_traffic_goes_on_and_it_is_said(own_cluster, release, fakes, client):
    release.install(fakes(*TWO))
    proxy = client()
    await release.hands_over(proxy, 4)
    async with traffic(release.url()) as load:
        await asyncio.to_thread(own_cluster.of_cluster, "restart-apiserver")
        await load.more(40)

        async def discovery():
            return (await proxy.get("/ready")).json()["discovery"]

        await release.until(discovery, "as the cluster says", "the proxy's view of the cluster")
        await asyncio.to_thread(release.kubectl, "scale", "deployment/pd-decode", "--replicas=3")
        await release.hands_over(proxy, 6)
        await load.more()
    assert not load.hurt()
    assert "API server" in release.kubectl("logs", "deployment/pd-proxy")
