"""The pool follows the cluster, through everything that an API server may do."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from proxy.config import Discovery, ProxyConfig
from proxy.discovery.discoverer import Discoverer
from proxy.engine import EngineClient
from proxy.health.monitor import HealthMonitor
from proxy.pool import Pool
from proxy.topology import ConnectorKind, Topology
from tests.fakes.api_server import FakeApiServer
from tests.fakes.engine import FakeEngine
from tests.proxy.discovery import builders

pod = partial(builders.pod, address="127.0.0.1", port=1)
"""Nobody listens there."""
SELECTOR = "app.kubernetes.io/instance=pd,duet/role"


class Cluster:
    """An API server, and a pool that follows it."""

    def __init__(self, api: FakeApiServer, pool: Pool, discoverer: Discoverer) -> None:
        self.api, self.pool, self.discoverer = api, pool, discoverer

    def state(self) -> dict[str, bool]:
        """Name -> whether it gets something new, but for its health."""
        return {member.instance.name: not member.draining for member in self.pool.members}

    async def until(self, **state: bool) -> None:
        await until(lambda: self.state() == {name.replace("_", "-"): value for name, value in state.items()})


async def until(holds) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - of many places, none of which tells
            await asyncio.sleep(0)


@asynccontextmanager
async def following(api: FakeApiServer, folder, reconcile: float) -> AsyncIterator[Cluster]:
    discovery = Discovery(SELECTOR, reconcile=reconcile)
    config = ProxyConfig(Topology((), ConnectorKind.NIXL_PULL), discovery=discovery)
    pool, client = Pool(config), EngineClient()
    monitor = HealthMonitor(pool, client, interval=60, patience=2)
    discoverer = Discoverer(config, discovery, pool, monitor, {"KUBECONFIG": api.kubeconfig(folder)})
    await discoverer.first(lambda: False)
    running = asyncio.create_task(discoverer.run())
    try:
        yield Cluster(api, pool, discoverer)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await discoverer.aclose()
        await client.aclose()


@pytest.fixture
async def api() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as server:
        yield server


@pytest.fixture
async def cluster(api, tmp_path) -> AsyncIterator[Cluster]:
    """It reads all anew so seldom that only the watch can tell."""
    api.put(pod("prefill-a", "prefill"))
    async with following(api, tmp_path, 3600) as found:
        await api.begun.wait()
        yield found


async def test_what_is_there_is_known_before_the_first_request(cluster):
    assert cluster.state() == {"prefill-a": True}
    assert cluster.discoverer.problem == ""
    assert cluster.api.selectors == {SELECTOR}


async def test_pods_come_change_and_go(cluster):
    cluster.api.put(pod("decode-a"))
    await cluster.until(prefill_a=True, decode_a=True)
    cluster.api.put(pod("decode-a", ready=False))
    await cluster.until(prefill_a=True, decode_a=False)
    cluster.api.put(pod("decode-a"))
    await cluster.until(prefill_a=True, decode_a=True)
    cluster.api.put(pod("decode-a", ends=True))
    await cluster.until(prefill_a=True, decode_a=False)
    cluster.api.delete("decode-a")
    await cluster.until(prefill_a=True)


async def test_an_engine_that_has_crashed_is_down_and_one_that_ends_is_drained(cluster):
    cluster.api.put(pod("decode-a", ready=False))
    cluster.api.put(pod("decode-b", ready=False, ends=True))
    await cluster.until(prefill_a=True, decode_a=False, decode_b=False)
    drained = {member.instance.name: member.drained for member in cluster.pool.members}
    assert drained == {"prefill-a": False, "decode-a": False, "decode-b": True}


async def test_an_engine_that_answers_but_is_not_ready_is_drained(cluster):
    async with FakeEngine("decode") as engine:
        port = int(engine.url.rpartition(":")[2])
        cluster.api.put(pod("decode-a", address="127.0.0.1", port=port, ready=False))
        await until(lambda: any(member.drained and not member.usable for member in cluster.pool.members))


async def test_an_instance_that_stays_keeps_its_state(cluster):
    member = cluster.pool.members[0]
    member.in_flight = 7
    cluster.api.put(pod("decode-a"))
    await cluster.until(prefill_a=True, decode_a=True)
    assert next(each for each in cluster.pool.members if each.instance.name == "prefill-a") is member


async def test_a_new_engine_serves_as_soon_as_it_is_known(cluster):
    async with FakeEngine("decode") as engine:
        cluster.api.put(pod("decode-a", address="127.0.0.1", port=int(engine.url.rpartition(":")[2])))
        await until(lambda: any(member.usable for member in cluster.pool.members))


async def test_a_deletion_that_no_watch_told_lives_no_longer_than_a_cut(cluster):
    cluster.api.put(pod("decode-a"))
    await cluster.until(prefill_a=True, decode_a=True)
    cluster.api.deaf = True
    cluster.api.delete("decode-a")
    cluster.api.cut()
    await cluster.until(prefill_a=True)


async def test_a_deletion_that_no_watch_told_lives_no_longer_than_a_round(api, tmp_path):
    api.put(pod("decode-a"))
    api.deaf = True
    async with following(api, tmp_path, 1.0) as cluster:
        await api.begun.wait()
        api.delete("decode-a")
        await cluster.until()


async def test_a_version_that_is_too_old_is_read_anew_and_no_problem(api, tmp_path):
    api.put(pod("decode-a"))
    api.expired = True
    async with following(api, tmp_path, 3600) as cluster:
        await until(lambda: api.lists >= 3)
        api.put(pod("decode-b"))
        await cluster.until(decode_a=True, decode_b=True)
        assert cluster.discoverer.problem == ""


async def test_while_the_api_server_is_down_all_stays_and_it_is_said(cluster, caplog):
    caplog.set_level(logging.INFO, "proxy")
    await cluster.api.stop()
    await until(lambda: "cannot be reached" in cluster.discoverer.problem)
    assert cluster.state() == {"prefill-a": True}
    cluster.api.pods["decode-a"] = pod("decode-a")
    await cluster.api.start()
    await cluster.until(prefill_a=True, decode_a=True)
    assert cluster.discoverer.problem == ""
    assert sum("instances stay as they are known" in line for line in caplog.messages) == 1
    assert "the cluster is seen" in caplog.messages


async def test_rights_that_are_missing_are_named_with_the_fix(api, tmp_path):
    api.refusal = (403, 'pods is forbidden: User "system:serviceaccount:llm:x" cannot list')
    async with following(api, tmp_path, 3600) as cluster:
        assert "the proxy may not see pods in the namespace llm (403: pods is forbidden" in cluster.discoverer.problem
        assert "a Role with the verbs get, list and watch on pods" in cluster.discoverer.problem
        api.refusal = None
        api.put(pod("decode-a"))
        await cluster.until(decode_a=True)


async def test_a_token_that_is_no_longer_known_is_read_anew(api, tmp_path):
    async with following(api, tmp_path, 1.0) as cluster:
        await api.begun.wait()
        api.token = "second"
        await until(lambda: "does not know the proxy (401: Unauthorized)" in cluster.discoverer.problem)
        api.kubeconfig(tmp_path)
        api.put(pod("decode-a"))
        await cluster.until(decode_a=True)
        assert cluster.discoverer.problem == ""


async def test_another_configuration_does_not_hide_that_the_cluster_cannot_be_seen(cluster):
    await cluster.api.stop()
    await until(lambda: "cannot be reached" in cluster.discoverer.problem)
    connector = Topology((), ConnectorKind.NIXL_PUSH)
    cluster.discoverer.follow(ProxyConfig(connector, discovery=Discovery(SELECTOR)))
    assert "cannot be reached" in cluster.discoverer.problem
    assert cluster.state() == {"prefill-a": True}
    assert cluster.pool.connector is ConnectorKind.NIXL_PUSH
    await cluster.api.start()


async def test_who_is_to_end_does_not_wait_for_an_api_server_that_hangs(api, tmp_path):
    api.answers.clear()
    discovery = Discovery(SELECTOR)
    config = ProxyConfig(Topology(()), discovery=discovery)
    pool, client = Pool(config), EngineClient()
    monitor = HealthMonitor(pool, client, interval=60, patience=2)
    discoverer = Discoverer(config, discovery, pool, monitor, {"KUBECONFIG": api.kubeconfig(tmp_path)})
    asked = iter((False, True))
    await discoverer.first(lambda: next(asked))
    assert discoverer.problem == "the cluster was not asked yet"
    await discoverer.aclose()
    await client.aclose()


async def test_an_answer_that_makes_no_sense_changes_nothing(cluster):
    cluster.api.watches[0].put_nowait(b"not JSON\n")
    await until(lambda: "makes no sense" in cluster.discoverer.problem)
    assert cluster.state() == {"prefill-a": True}
    await until(lambda: cluster.discoverer.problem == "")


async def test_a_pod_may_be_described_at_any_length(cluster):
    cluster.api.put(pod("decode-a", padding=300_000))
    await cluster.until(prefill_a=True, decode_a=True)


async def test_a_pod_that_cannot_be_an_engine_is_told_and_the_others_serve(cluster):
    cluster.api.put(pod("odd", "router"))
    await until(lambda: cluster.discoverer.problem.startswith("pod odd: label duet/role is 'router'"))
    assert cluster.state() == {"prefill-a": True}
    cluster.api.delete("odd")
    await until(lambda: cluster.discoverer.problem == "")


async def test_without_any_cluster_that_is_the_problem(tmp_path):
    discovery = Discovery(SELECTOR)
    config = ProxyConfig(Topology(()), discovery=discovery)
    pool, client = Pool(config), EngineClient()
    monitor = HealthMonitor(pool, client, interval=60, patience=2)
    discoverer = Discoverer(config, discovery, pool, monitor, {"KUBECONFIG": str(tmp_path / "none")})
    await discoverer.first(lambda: False)
    assert "no cluster is known" in discoverer.problem
    assert "set KUBECONFIG" in discoverer.problem
    await discoverer.aclose()
    await client.aclose()
