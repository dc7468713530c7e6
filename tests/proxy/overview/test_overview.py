"""``GET /overview``."""

import json
from dataclasses import replace

import httpx
import psutil
import pytest

from proxy.config import ProxyConfig
from proxy.keys import new_key
from proxy.overview.failures import KEPT
from proxy.settings import Admin, Admission, Canary, ClientKey, FailurePolicy, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually, topology_of
from tests.proxy.program import running

TEXT = {"model": "fake", "prompt": "a secret prompt", "max_tokens": 3}
KEY, DIGEST = new_key()


async def overview(duet, **headers: str) -> dict:
    answer = await duet.client.get("/overview", headers=headers)
    assert answer.status_code == 200
    return answer.json()


async def test_it_tells_what_the_routes_for_operators_tell(duet):
    await duet.client.post("/v1/completions", json=TEXT)
    told = await overview(duet)
    ready = await duet.ready()
    assert [each["name"] for each in told["instances"]] == ["prefill-0", "decode-0"]
    assert ready["instances"][0].items() <= told["instances"][0].items()
    assert told["pairs"] == (await duet.client.get("/pairs")).json()["pairs"]
    assert told["pairs"][0]["handed_over"] == 1
    assert (told["health"], told["reasons"], told["failures"]) == ("ready", [], [])
    assert told["proxy"]["modes"] == {"pd": True, "aggregated": True}
    assert told["proxy"]["actions"] == "unconfigured"
    assert told["history"] == {"interval": 5, "points": []}
    assert told["about"] is None


async def test_a_request_that_fails_is_told_with_its_reason_and_without_its_prompt(start):
    duet = await start(policy=FailurePolicy.FAIL)
    duet.decode.faults.append(Fault(status=500, body=b"a secret of the engine"))
    headers = {"x-request-id": "mine", "authorization": "Bearer hidden"}
    assert (await duet.client.post("/v1/completions", json=TEXT, headers=headers)).status_code == 500
    (failure,) = (await overview(duet))["failures"]
    assert failure["request_id"].startswith("mine-")
    assert failure["reason"] == "decode-0: the engine answered 500"
    assert (failure["status"], failure["outcome"], failure["endpoint"]) == (500, "failed", "completions")
    assert (failure["prefill"], failure["decode"], failure["bypass"]) == ("prefill-0", "decode-0", None)
    assert "secret" not in json.dumps(failure)
    assert "hidden" not in json.dumps(failure)


async def test_a_stream_that_breaks_off_is_told_and_what_a_client_does_is_not(duet):
    await duet.client.post("/v1/completions", content=b"no JSON")
    await duet.client.get("/v1/nothing-here")
    duet.decode.faults.append(Fault(cut_after=2))
    await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    (failure,) = (await overview(duet))["failures"]
    assert (failure["status"], failure["outcome"], failure["path"]) == (200, "broken_off", "pd")


async def test_the_last_failures_are_kept_newest_first(start):
    duet = await start(engines=[])
    for number in range(KEPT + 5):
        await duet.client.post("/v1/completions", json=TEXT, headers={"x-request-id": f"r{number}"})
    kept = [failure["request_id"].partition("-")[0] for failure in (await overview(duet))["failures"]]
    assert kept == [f"r{number}" for number in range(KEPT + 4, 4, -1)]


async def test_a_refusal_for_want_of_room_is_told(start):
    duet = await start(settings=Settings(admission=Admission(concurrency=1, queue=0)))
    duet.decode.faults.append(Fault(stall_after=1))
    async with duet.client.stream("POST", "/v1/completions", json={**TEXT, "stream": True}):
        assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 429
        (failure,) = (await overview(duet))["failures"]
        assert (failure["outcome"], failure["reason"][:8]) == ("refused", "Too many")


async def test_without_prefill_it_is_degraded_and_says_why(start):
    duet = await start(probe_interval=0.02)
    await duet.prefill.stop()

    async def health() -> str:
        return (await overview(duet))["health"]

    await eventually(health, "degraded")
    reasons = (await overview(duet))["reasons"]
    assert any(reason.startswith("Requests bypass prefill") for reason in reasons)
    assert any(reason.startswith("prefill-0: ") for reason in reasons)
    await duet.decode.stop()
    await eventually(health, "down")


async def test_a_drained_instance_is_a_reason_only_where_the_others_are_not_enough(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, follow=True)
    await duet.reconfigure(lambda config: replace(config, draining=("decode-0",)))
    assert ((await overview(duet))["health"], (await overview(duet))["reasons"]) == ("ready", [])
    await duet.reconfigure(lambda config: replace(config, draining=("prefill-0",)))
    told = await overview(duet)
    assert (told["health"], told["reasons"][1]) == ("degraded", "prefill-0 is drained: it gets no new requests")
    await duet.reconfigure(lambda config: replace(config, draining=("decode-0", "decode-1")))
    told = await overview(duet)
    assert (told["health"], len(told["reasons"])) == ("down", 2)


async def test_a_pair_that_a_canary_does_not_come_through_is_a_reason(start):
    duet = await start(canary=Canary())
    duet.decode.recomputes = True
    await duet.client.post("/pairs/prove")
    told = await overview(duet)
    assert told["health"] == "degraded"
    assert "prefill-0 to decode-0: decode computed the prompt itself" in " ".join(told["reasons"])


async def test_what_the_launcher_wrote_beside_the_configuration_is_told_as_it_is_now(start):
    duet = await start(follow=True)
    file = duet.file.with_name("about.json")
    assert (await overview(duet))["about"] is None
    file.write_text(json.dumps({"profile": "demo", "techniques": ["PD"]}))
    assert (await overview(duet))["about"] == {"profile": "demo", "techniques": ["PD"]}
    for bad in ("{", "[]", "1", '"x"', "\udcff", "[" * 100_000, " " * 300_000 + "{}"):
        file.write_bytes(bad.encode(errors="surrogateescape"))
        assert (await overview(duet))["about"] is None
    file.unlink()
    file.mkdir()
    assert (await overview(duet))["about"] is None


async def test_with_keys_it_needs_one(start):
    duet = await start(settings=Settings(client_keys=(ClientKey("alice", DIGEST),)))
    assert (await duet.client.get("/overview")).status_code == 401
    assert (await overview(duet, authorization=f"Bearer {KEY}"))["health"] == "ready"


async def test_with_an_address_for_operators_clients_get_neither_it_nor_the_page(tmp_path, unused_tcp_port):
    settings = Settings(admin=Admin(unused_tcp_port))
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(ProxyConfig(topology_of([prefill, decode]), settings), tmp_path) as program,
    ):
        for path in ("/overview", "/ui", "/ui/", "/ui/main.js"):
            assert (await program.client.get(path)).status_code == 404
        admin = f"http://127.0.0.1:{unused_tcp_port}"
        assert (await program.client.get(f"{admin}/overview")).json()["health"] == "ready"
        assert (await program.client.get(f"{admin}/ui/")).status_code == 200
        assert prefill.echoed == decode.echoed == []


@pytest.mark.parametrize("died", [False, True])
async def test_with_several_workers_each_tells_the_failures_of_all(tmp_path, died):
    async with running(ProxyConfig(topology_of([]), Settings(workers=2)), tmp_path) as program:
        await program.said("listening on")

        async def anybody() -> httpx.AsyncClient:
            """A client of a new connection, which any of them may take."""
            return httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60)

        for _ in range(12):
            async with await anybody() as client:
                assert (await client.post("/v1/completions", json=TEXT)).status_code == 503

        async def counts() -> set[int]:
            found = set()
            for _ in range(6):
                async with await anybody() as client:
                    found.add(len((await client.get("/overview")).json()["failures"]))
            return found

        await eventually(counts, {12})
        if died:
            for worker in psutil.Process(program.pid).children():
                worker.kill()
            for _ in range(2):
                await program.said("listening on")
            assert await counts() == {12}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999"])
async def test_numbers_of_an_engine_that_are_none_are_left_out(start, value):
    engine = FakeEngine()
    names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "generation_tokens_total")
    engine.more_metrics = lambda: "".join(f'vllm:{name}{{engine="1"}} {value}\n' for name in names)
    duet = await start(engines=[engine], probe_interval=0.02)
    told = (await overview(duet))["instances"][0]
    assert (told["running"], told["waiting"], told["kv_cache_usage"]) == (0, 0, 0)
    page = (await duet.client.get("/metrics/engines")).text
    assert "duet_engine_requests_running{" in page
    assert 'rank="1"' not in page
