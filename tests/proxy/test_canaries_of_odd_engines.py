"""Canaries before engines that answer otherwise than vLLM does by default: no pair is lost to them, nor time or log."""

import asyncio
import json
import sys

import pytest

from proxy.config import ProxyConfig, dump
from proxy.settings import Breaker as Limits
from proxy.settings import Canary, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.fakes.transfer import Fabric
from tests.proxy.conftest import Duet, eventually, topology_of

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
ON = Canary(interval=3600)
NO_PAUSE = Settings(breaker=Limits(pause=0.01, longest_pause=0.02))
PAUSE = Settings(breaker=Limits(pause=3600, longest_pause=3600))


def _models(**other: object) -> bytes:
    entry = {"id": "fake", "parent": None, "max_model_len": 4096, **other}
    return json.dumps({"data": [entry]}).encode()


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/v1/models", 401, "GET /v1/models with status 401"),
        ("/v1/models", 404, "GET /v1/models with status 404"),
        ("/metrics", 404, "does not count where prompts come from"),
        ("/metrics", 401, "does not count where prompts come from"),
        ("/tokenize", 403, "POST /tokenize with status 403"),
    ],
)
async def test_where_an_engine_refuses_what_canaries_need_requests_go_on(start, path, status, reason):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    engines[1].instead[path] = (status, b'{"error":"no"}')
    duet = await start(engines=engines, canary=ON)
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert (pair["proof"]["verdict"], pair["gets_requests"]) == ("impossible", True)
    assert reason in pair["reason"]
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"


@pytest.mark.parametrize("length", [None, "no number"])
async def test_a_model_that_does_not_say_how_long_it_may_get_is_proven(start, length):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    engines[1].instead["/v1/models"] = (200, _models(max_model_len=length))
    duet = await start(engines=engines, canary=ON)
    assert await duet.standing() == "proven"


@pytest.mark.parametrize("tokens", [[1, "two", None], [[1], [2]], {"a": 1}])
async def test_a_tokenizer_that_answers_nonsense_is_told_once_and_no_pair_is_lost(start, tokens):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    engines[1].instead["/tokenize"] = (200, json.dumps({"tokens": tokens}).encode())
    duet = await start(engines=engines, canary=ON)
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert (pair["proof"]["verdict"], pair["gets_requests"]) == ("impossible", True)


async def test_a_pair_that_cannot_be_decided_keeps_no_other_from_being_looked_at(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, canary=Canary(interval=0.01))
    engines[1].instead["/v1/models"] = (503, b"")
    await _undecided(duet)
    engines[2].wrong_kv = True
    await eventually(lambda: duet.standing(decode="decode-1"), "out")
    assert await duet.standing(decode="decode-0") == "proven"  # what was known stays known


async def test_a_canary_that_decided_nothing_is_not_sent_again_at_once(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, canary=Canary(interval=0.01), settings=PAUSE)
    engines[1].instead["/v1/models"] = (503, b"")
    await _undecided(duet)
    count = await duet.metric("duet_canaries_total", verdict="proven", decode="decode-1")
    await eventually(lambda: duet.metric("duet_canaries_total", verdict="proven", decode="decode-1"), count + 2)
    assert await duet.metric("duet_canaries_total", verdict="undecided") == 1


async def test_one_link_that_is_cut_makes_no_other_suspect_of_its_failed_transfers(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode")]
    engines[2].kv_fails_from.add(engines[0].engine_id)
    duet = await start(engines=engines, canary=ON, settings=PAUSE, probe_interval=0.02)
    await eventually(lambda: duet.standing("prefill-0"), "out")
    await eventually(lambda: duet.standing("prefill-1"), "proven")
    before = await duet.metric("duet_canaries_total", prefill="prefill-1")
    for failed in range(1, 4):
        engines[2].counts["nixl_num_failed_transfers"] = failed
        await eventually(lambda: duet.engine_metric("duet_engine_kv_failed_transfers_total", engine="decode-0"), failed)
    assert (await duet.pairs())["prefill-1", "decode-0"]["gets_requests"]
    assert await duet.metric("duet_canaries_total", prefill="prefill-1") == before


async def test_a_pair_that_became_suspect_while_engines_are_too_busy_for_canaries_serves_again(start):
    duet = await start(canary=ON, settings=NO_PAUSE)
    duet.decode.instead["/v1/models"] = (503, b"")
    for _ in range(2):
        duet.decode.faults.append(Fault(status=500))
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert answer.headers["x-duet-bypass"] == "decode_failed"
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert answer.headers["x-duet-bypass"] == "no_pair"
        while (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] != "pd":
            pass


async def test_a_pair_that_was_found_broken_gets_no_requests_whatever_keeps_canaries_from_it(start):
    duet = await start(canary=ON, settings=NO_PAUSE)
    duet.decode.wrong_kv = True
    await duet.client.post("/pairs/prove")
    duet.decode.instead["/v1/models"] = (503, b"")
    await eventually(lambda: _enough(duet), True)
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-bypass"] == "no_pair"


async def _enough(duet: Duet) -> bool:
    return await duet.metric("duet_canaries_total", verdict="undecided") >= 4


async def test_prefill_whose_metrics_hang_is_proven_by_decodes_counters(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    duet = await start(engines=engines, canary=Canary(enabled=False, timeout=2))
    engines[0].instead["/metrics"] = None
    answer = await duet.client.post("/pairs/prove")
    assert answer.json()["pairs"][0]["proof"]["verdict"] == "proven"


@pytest.mark.parametrize("path", ["/metrics", "/v1/models", "/tokenize"])
async def test_a_route_of_decode_that_hangs_is_not_taken_for_a_failed_hand_over(start, path):
    duet = await start(canary=Canary(enabled=False, timeout=2))
    duet.decode.instead[path] = None
    proof = (await duet.client.post("/pairs/prove")).json()["pairs"][0]["proof"]
    assert proof["verdict"] == "undecided"
    assert f"decode-0 does not answer GET {path.replace('tokenize', 'v1/models')}" in proof["reason"]


@pytest.mark.parametrize(("words", "suspicions"), [(3, 0), (40, 1)])
async def test_that_no_kv_of_short_prompts_comes_from_a_store_speaks_against_nobody(start, caplog, words, suspicions):
    fabric = Fabric()
    engines = [FakeEngine(role, connector="shared-storage", fabric=fabric) for role in ("prefill", "decode")]
    duet = await start(engines=engines, canary=ON, settings=PAUSE, probe_interval=0.02)
    duet.decode.whole_blocks, duet.decode.recomputes = words == 3, words > 3
    for number in range(8):
        prompt = " ".join([str(number)] * words)
        assert (await duet.client.post("/v1/completions", json=TEXT | {"prompt": prompt})).status_code == 200
        await _looked_at(duet)
    assert sum("silently off" in record.getMessage() for record in caplog.records) == suspicions


async def _looked_at(duet: Duet) -> None:
    """Wait until the proxy has taken in what decode counts now."""
    before = duet.decode.looks
    async with asyncio.timeout(60):
        while duet.decode.looks < before + 3:
            await duet.client.get("/health")


async def test_a_proxy_that_is_stopped_before_its_first_canary_is_through_ends_at_once(tmp_path):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        prefill.faults.append(Fault(hang=True))
        settings = Settings(canary=Canary(timeout=3600))
        (tmp_path / "proxy.json").write_text(dump(ProxyConfig(topology_of([prefill, decode]), settings)))
        command = ("-m", "proxy", "--config", str(tmp_path / "proxy.json"), "--port", "0")
        process = await asyncio.create_subprocess_exec(sys.executable, *command)
        try:
            await asyncio.wait_for(prefill.until(lambda: bool(prefill.seen)), 30)
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 30) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _undecided(duet: Duet) -> None:
    async with asyncio.timeout(60):
        while not await duet.metric("duet_canaries_total", verdict="undecided"):
            pass


async def test_many_who_ask_for_proofs_at_a_time_share_them(start):
    duet = await start(canary=Canary(enabled=False))
    gate = asyncio.Event()
    duet.prefill.faults.append(Fault(wait=gate))
    first = asyncio.create_task(duet.client.post("/pairs/prove"))
    await duet.prefill.saw()
    asked = [asyncio.create_task(duet.client.post("/pairs/prove")) for _ in range(20)]
    await eventually(lambda: _unanswered(duet), 21)
    gate.set()
    answers = await asyncio.gather(first, *asked)
    assert {answer.json()["pairs"][0]["proof"]["verdict"] for answer in answers} == {"proven"}
    assert len(duet.prefill.seen) == 2  # one that had begun, and one for all who asked later


async def _unanswered(duet: Duet) -> int:
    """Requests that clients have sent and that wait for their answers."""
    await duet.client.get("/health")
    return sum(task.get_coro().__qualname__.endswith("run_asgi") for task in asyncio.all_tasks())
