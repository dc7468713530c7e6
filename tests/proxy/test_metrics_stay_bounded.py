"""However much clients and engines make up, there are only so many samples; and none of instances that are gone."""

import asyncio
import signal
from dataclasses import replace

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from proxy.config import ProxyConfig, dump
from proxy.endpoint import Endpoint
from proxy.headers import RequestId
from proxy.instruments import INSTANCES
from proxy.metrics import Metrics
from proxy.pool import Pool
from proxy.record import Outcome, Record
from proxy.settings import Settings
from proxy.topology import ConnectorKind, Instance, Role, Topology
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import topology_of
from tests.proxy.program import running

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 3}
MODEL = st.text(max_size=5) | st.none() | st.integers() | st.lists(st.text(max_size=5), max_size=2)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(MODEL, st.integers(0, 70_000)), min_size=20, max_size=60))
def test_made_up_models_and_statuses_make_no_samples(made_up):
    registry, pool = CollectorRegistry(), Pool(ProxyConfig(Topology(())))
    pool.models = frozenset({"one", "two"})
    metrics = Metrics(registry, pool)

    async def finish() -> None:
        for model, status in made_up:
            record = Record(RequestId("a", "a"), Endpoint.CHAT, model=metrics.model(model))
            metrics.finished(record, status, Outcome.OK)
        metrics.flush()

    asyncio.run(finish())
    requests = next(family for family in registry.collect() if family.name == "duet_requests")
    labels = [sample.labels for sample in requests.samples if sample.name == "duet_requests_total"]
    assert {each["model"] for each in labels} <= {"one", "two", "other"}
    assert len({each["status"] for each in labels}) <= 70


async def test_made_up_paths_methods_and_statuses_make_few_samples(start):
    engine = FakeEngine()
    duet = await start(engines=[engine])
    for number in range(40):
        await duet.client.request("POST", f"/v1/made/up/{number}", json={"model": f"m{number}"})
        await duet.client.request(f"MADE{chr(65 + number % 26)}", f"/v1/completions/{number}")
        engine.faults.append(Fault(status=560 + number))
        await duet.client.post("/v1/completions", json=TEXT | {"model": f"made-up-{number}"})
    text = (await duet.client.get("/metrics")).text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    assert len([each for each in samples if each.name == "duet_requests_total"]) < 8
    assert "made" not in text.lower()


def series_after(pods: int, *, forgets: bool) -> int:
    """How many a registry has when so many instances have come, were counted and have gone."""
    registry, pool = CollectorRegistry(), Pool(ProxyConfig(Topology(())))
    metrics = Metrics(registry, pool, forgets=forgets)

    async def churn() -> None:
        for number in range(pods):
            instances = (
                Instance(f"prefill-{number}", Role.PREFILL, f"http://prefill-{number}"),
                Instance(f"decode-{number}", Role.DECODE, f"http://decode-{number}"),
            )
            pool.follow(ProxyConfig(Topology(instances, ConnectorKind.NIXL_PULL)))
            [pair] = pool.pairs()
            metrics.handed_over(pair, well=True, seconds=0.1)
            metrics.suspended(pair)
            metrics.opened(pair.decode)
            metrics.flush()
        pool.follow(ProxyConfig(Topology(())))
        metrics.flush()

    asyncio.run(churn())
    return sum(len(family.samples) for family in registry.collect())


def test_where_names_never_come_back_nothing_is_kept_of_instances_that_are_gone():
    assert series_after(50, forgets=True) == series_after(0, forgets=True)
    assert series_after(50, forgets=False) > series_after(0, forgets=False), "some had been counted"


def instances_in(text: str) -> set[str]:
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {value for each in samples for label, value in each.labels.items() if label in INSTANCES}


async def test_samples_of_an_instance_vanish_with_it_and_come_back_with_it(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, follow=True)
    engines[2].faults.append(Fault(status=500))
    for _ in range(2):
        await duet.client.post("/v1/completions", json=TEXT | {"stream": True})
    await duet.idle()
    everybody = {"prefill-0", "decode-0", "decode-1"}
    assert instances_in((await duet.client.get("/metrics")).text) == everybody
    assert await duet.metric("duet_upstream_failures_total", engine="decode-1") == 1
    whole = duet.config.topology
    fewer = replace(whole, instances=whole.instances[:2])
    await duet.reconfigure(lambda config: replace(config, topology=fewer))
    assert instances_in((await duet.client.get("/metrics")).text) == everybody - {"decode-1"}
    assert await duet.metric("duet_requests_total") == 2
    await duet.reconfigure(lambda config: replace(config, topology=whole))
    assert await duet.metric("duet_upstream_failures_total", engine="decode-1") == 1


async def test_they_vanish_whichever_of_several_workers_is_asked(tmp_path):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, FakeEngine("decode") as gone:
        config = ProxyConfig(topology_of([prefill, decode, gone]), Settings(workers=2))
        async with running(config, tmp_path) as program:
            await program.said("listening on")

            async def ask(method: str, path: str, accept: str = "", **more: object) -> httpx.Response:
                """Over a new connection, so that any worker may answer."""
                async with httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60) as client:
                    return await client.request(method, path, headers={"accept": accept}, **more)

            answers = await asyncio.gather(*(ask("POST", "/v1/completions", json=TEXT) for _ in range(8)))
            assert {each.status_code for each in answers} == {200}
            fewer = replace(config.topology, instances=config.topology.instances[:2])
            (tmp_path / "new.json").write_text(dump(replace(config, topology=fewer)))
            (tmp_path / "new.json").replace(tmp_path / "proxy.json")
            for _ in range(2):
                await program.said("now serving with prefill-0, decode-0;")
            for kind in ["text/plain", "application/openmetrics-text"] * 4:
                text = (await ask("GET", "/metrics", kind)).text
                assert "decode-1" not in text
                assert 'duet_handovers_total{decode="decode-0"' in text
            program.signal(signal.SIGTERM)
            assert await program.end() == 0
