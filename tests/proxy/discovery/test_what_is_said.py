"""What a proxy that finds its engines in a cluster tells of that."""

import pytest

from proxy.config import Discovery
from tests.fakes.api_server import FakeApiServer
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import eventually
from tests.proxy.discovery.builders import pod

ASK = {"model": "fake", "prompt": "one two three", "max_tokens": 2}


def port(engine: FakeEngine) -> int:
    return int(engine.url.rpartition(":")[2])


async def test_requests_are_served_by_pods_and_the_cluster_is_told_of(start, tmp_path, monkeypatch: pytest.MonkeyPatch):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    async with FakeApiServer() as api:
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        duet = await start(engines=engines, discovery=Discovery("duet/role", reconcile=3600))
        assert (await duet.ready())["ready"] is False
        assert (await duet.ready())["discovery"] == "as the cluster says"
        for engine in engines:
            api.put(pod(f"pd-{engine.role}-x", engine.role, address="127.0.0.1", port=port(engine)))

        async def ready() -> bool:
            return (await duet.ready())["modes"]["pd"]

        await eventually(ready, True)
        answer = await duet.client.post("/v1/completions", json=ASK)
        assert (answer.headers["x-duet-path"], answer.headers["x-duet-prefill"]) == ("pd", "pd-prefill-x")
        assert 0 <= await duet.metric("duet_discovery_age_seconds") < 60

        await api.stop()

        async def told() -> bool:
            overview = (await duet.client.get("/overview")).json()
            return "cannot be reached" in overview["proxy"]["discovery"] and overview["health"] == "degraded"

        await eventually(told, True)
        answer = await duet.client.post("/v1/completions", json=ASK)
        assert answer.headers["x-duet-path"] == "pd"
        await api.start()
