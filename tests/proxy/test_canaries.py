"""Canaries: pairs that are proven, found out, kept out of use, and proven again."""

import asyncio

import pytest

from proxy.settings import Breaker as Limits
from proxy.settings import Canary, FailurePolicy, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
ON = Canary(interval=3600)
OFTEN = Canary(interval=0.01)
NO_PAUSE = Settings(breaker=Limits(pause=0.01, longest_pause=0.02))


async def test_a_pair_is_proven_before_the_first_request_and_says_how(start):
    duet = await start(canary=ON)
    assert len(duet.prefill.seen) == 1
    assert len(duet.decode.seen) == 2  # with prefill's KV, and alone
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert pair["standing"] == "proven"
    assert pair["gets_requests"]
    assert pair["reason"] == ""
    proof = pair["proof"]
    assert proof["verdict"] == "proven"
    assert proof["tokens"] == 144
    assert proof["bytes"] == 144 * 4096
    assert proof["bytes_per_second"] == pytest.approx(4096e6)
    assert await duet.metric("duet_canaries_total", verdict="proven") == 1
    assert await duet.metric("duet_pair_usable", prefill="prefill-0", decode="decode-0") == 1


async def test_canaries_are_no_requests_of_clients(start):
    duet = await start(canary=ON)
    assert await duet.metric("duet_requests_total") == 0
    assert await duet.metric("duet_handovers_total") == 0
    assert (await duet.pairs())["prefill-0", "decode-0"]["handed_over"] == 0


async def test_no_two_canaries_ask_the_same(start):
    duet = await start(canary=OFTEN)
    await duet.prefill.until(lambda: len(duet.prefill.seen) >= 3)
    assert len({seen.body for seen in duet.prefill.seen}) == len(duet.prefill.seen)


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        (
            "kv_fails",
            "failed",
            "decode-0: the engine answered 500; by its counter 1 hand-shakes or transfers of KV failed",
        ),
        ("recomputes", "recomputed", "took 0 of 144 tokens from outside"),
        ("wrong_kv", "wrong_text", "with prefill's KV and"),
    ],
)
async def test_a_pair_that_does_not_work_gets_no_requests_until_it_does(start, fault, verdict, reason):
    decode = FakeEngine("decode")
    setattr(decode, fault, True)
    duet = await start(engines=[FakeEngine("prefill"), decode], canary=ON, settings=NO_PAUSE)
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert (pair["standing"], pair["gets_requests"], pair["proof"]["verdict"]) == ("out", False, verdict)
    assert reason in pair["reason"]
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "no_pair")
    assert await duet.metric("duet_pair_usable") == 0
    setattr(decode, fault, False)
    await eventually(duet.standing, "proven")
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"


async def test_one_failed_hand_over_suspends_a_pair_until_a_canary_has_looked(start):
    duet = await start(canary=ON, settings=NO_PAUSE)
    duet.decode.kv_fails = True
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "decode_failed")
    for _ in range(5):
        assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-bypass"] == "no_pair"
    assert await duet.metric("duet_handovers_total", outcome="failed") == 1
    await eventually(duet.standing, "out")
    duet.decode.kv_fails = False
    await eventually(duet.standing, "proven")


async def test_a_request_that_fails_by_itself_costs_a_pair_a_moment_only(start):
    duet = await start(canary=ON)
    duet.decode.faults.append(Fault(status=500))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.headers["x-duet-bypass"] == "decode_failed"
    await eventually(lambda: duet.metric("duet_canaries_total", verdict="proven"), 2)
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"


async def test_with_one_link_cut_only_that_pair_is_out(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, canary=ON, settings=NO_PAUSE)
    first = await duet.client.post("/v1/completions", json=TEXT)
    cut = first.headers["x-duet-prefill"], first.headers["x-duet-decode"]
    names = ("prefill-0", "prefill-1", "decode-0", "decode-1")
    prefill, decode = (engines[names.index(name)] for name in cut)
    decode.kv_fails_from.add(prefill.engine_id)
    while await duet.standing(*cut) == "proven":
        assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
    await eventually(lambda: duet.standing(*cut), "out")
    for _ in range(8):
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert answer.headers["x-duet-path"] == "pd"
        assert (answer.headers["x-duet-prefill"], answer.headers["x-duet-decode"]) != cut
    assert await duet.metric("duet_handovers_total", outcome="failed") == 1
    others = {pair["standing"] for key, pair in (await duet.pairs()).items() if key != cut}
    assert others == {"proven"}
    assert (await duet.client.get("/pairs")).json()["blamed"] == {}
    decode.kv_fails_from.clear()
    await eventually(lambda: duet.standing(*cut), "proven")


async def test_an_instance_none_of_whose_pairs_works_is_blamed(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    engines[3].kv_fails = True
    duet = await start(engines=engines, canary=ON, settings=NO_PAUSE)
    blamed = (await duet.client.get("/pairs")).json()["blamed"]
    assert list(blamed) == ["decode-1"]
    assert "decode-1: the engine answered 500" in blamed["decode-1"]
    instances = {each["name"]: each["reason"] for each in (await duet.ready())["instances"]}
    assert "none of its pairs works" in instances["decode-1"]


async def test_a_restarted_engine_is_proven_again_before_requests(start):
    duet = await start(canary=ON, probe_interval=0.02)
    before = await duet.metric("duet_canaries_total", verdict="proven")
    duet.prefill.started += 1
    await eventually(lambda: duet.metric("duet_canaries_total", verdict="proven"), before + 1)


@pytest.mark.parametrize(
    ("counters", "reason"),
    [
        (("nixl_num_kv_expired_reqs", "nixl_num_notifications_after_expiry"), "KV was read after its lease"),
        (("nixl_num_failed_transfers",), "transfers failed"),
    ],
)
async def test_an_engines_own_counters_make_its_pairs_suspect(start, caplog, counters, reason):
    duet = await start(canary=ON, probe_interval=0.02)
    await eventually(lambda: duet.metric("duet_canaries_total", verdict="proven"), 1)
    duet.prefill.counts.update(dict.fromkeys(counters, 2))
    await eventually(lambda: duet.metric("duet_canaries_total", verdict="proven"), 2)
    assert any(reason in record.getMessage() for record in caplog.records)
    await eventually(duet.standing, "proven")


async def test_decode_that_answers_but_takes_no_kv_is_found_out(start):
    duet = await start(canary=ON, probe_interval=0.02, settings=NO_PAUSE)
    duet.decode.recomputes = True
    while await duet.standing() == "proven":
        assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 200
    await eventually(duet.standing, "out")
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert pair["proof"]["verdict"] == "recomputed"
    assert await duet.metric("duet_pd_silently_off", decode="decode-0") == 1
    duet.decode.recomputes = False
    await eventually(duet.standing, "proven")
    assert await duet.metric("duet_pd_silently_off", decode="decode-0") == 0


@pytest.mark.parametrize("status", [401, 404])
async def test_where_engines_refuse_canaries_requests_go_on_and_the_reason_is_told(start, status):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    engines[0].faults.append(Fault(status=status))
    duet = await start(engines=engines, canary=ON)
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert (pair["standing"], pair["gets_requests"]) == ("untried", True)
    assert f"refuse the canary with status {status}" in pair["reason"]
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"
    assert await duet.standing() == "working"


async def test_a_canary_that_hangs_where_nothing_else_runs_failed(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    engines[1].faults.append(Fault(hang=True))
    slowly = Settings(breaker=Limits(pause=0.5, longest_pause=0.5))
    duet = await start(engines=engines, canary=Canary(interval=3600, timeout=0.2), settings=slowly)
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert (pair["standing"], pair["reason"]) == ("out", "no answer within 0.2 s")
    await eventually(duet.standing, "proven")


async def test_operators_can_have_all_pairs_proven_now(start):
    duet = await start(canary=Canary(enabled=False))
    assert await duet.standing() == "untried"
    answer = await duet.client.post("/pairs/prove")
    assert [pair["standing"] for pair in answer.json()["pairs"]] == ["proven"]
    duet.decode.wrong_kv = True
    answer = await duet.client.post("/pairs/prove")
    assert [pair["standing"] for pair in answer.json()["pairs"]] == ["out"]


async def test_under_the_policy_fail_an_unproven_pair_is_an_error_and_the_log_says_why(start, caplog):
    caplog.set_level("INFO")
    decode = FakeEngine("decode")
    decode.kv_fails = True
    duet = await start(engines=[FakeEngine("prefill"), decode], canary=ON, policy=FailurePolicy.FAIL)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "No prefill and decode instance work together now."
    assert "no pair works now: prefill-0 to decode-0: decode-0: the engine answered 500" in caplog.text


async def test_a_pair_whose_instance_is_away_says_so(start):
    duet = await start(canary=ON, probe_interval=0.02)
    await duet.decode.stop()
    await eventually(duet.standing, "away")
    pair = (await duet.pairs())["prefill-0", "decode-0"]
    assert (pair["gets_requests"], pair["reason"]) == (False, "decode-0: connection refused")
    await duet.decode.start()
    await eventually(duet.standing, "proven")


async def test_a_frozen_engine_is_out_and_comes_back_when_it_works_again(start):
    settings = Settings(frozen_after=0.4)
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, probe_interval=0.02, settings=settings)
    engines[1].thawed.clear()
    waiting = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))

    async def healthy() -> bool:
        return next(each["healthy"] for each in (await duet.ready())["instances"] if each["name"] == "decode-0")

    await eventually(healthy, False)
    reasons = [each["reason"] for each in (await duet.ready())["instances"]]
    assert "it has work, but none of its counters moves" in reasons
    for _ in range(3):
        assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-decode"] == "decode-1"
    engines[1].thawed.set()
    await eventually(healthy, True)
    assert (await waiting).status_code == 200


async def test_an_engine_that_is_busy_for_long_stays(start):
    settings = Settings(frozen_after=0.2)
    duet = await start(probe_interval=0.02, settings=settings)
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    async with duet.client.stream("POST", "/v1/completions", json=TEXT | {"stream": True}) as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        # Its counters stand still, as with a client that does not read; but it answers a request for one token.
        await duet.decode.until(lambda: any(b'"prompt": "a"' in seen.body for seen in duet.decode.seen))
        for _ in range(20):
            assert all(each["healthy"] for each in (await duet.ready())["instances"])
        for _ in range(10):
            gate.release()
        assert [line async for line in lines][-2:] == ["data: [DONE]", ""]


async def test_metrics_tell_what_the_engines_count_and_how_much_came_from_prefill(start):
    duet = await start(probe_interval=0.02)
    duet.prefill.counts["nixl_num_kv_expired_reqs"] = 3
    await eventually(lambda: duet.engine_metric("duet_engine_kv_expired_total", engine="prefill-0"), 3)
    assert (await duet.client.post("/v1/completions", json=TEXT | {"stream": True})).headers["x-duet-path"] == "pd"
    await eventually(lambda: duet.metric("duet_kv_received_share", decode="decode-0"), 1)
    await duet.client.post("/v1/completions", json=TEXT | {"n": 2})
    await eventually(lambda: duet.metric("duet_kv_received_share", decode="decode-0"), 0.5)
    assert await duet.metric("duet_handover_seconds_count", prefill="prefill-0", decode="decode-0") == 1


@pytest.mark.parametrize("tells", [True, False])
async def test_other_traffic_does_not_hide_that_decode_computes_a_prompt_itself(start, tells):
    decode = FakeEngine("decode")
    decode.recomputes, decode.tells_cached = True, tells
    duet = await start(engines=[FakeEngine("prefill"), decode], canary=Canary(enabled=False))
    hidden = asyncio.create_task(_others_hand_over(decode))
    try:
        answer = (await duet.client.post("/pairs/prove")).json()
    finally:
        hidden.cancel()
    # Without its answer's account there is only the counter, which tells of all requests together.
    assert answer["pairs"][0]["proof"]["verdict"] == ("recomputed" if tells else "proven")


async def _others_hand_over(decode: FakeEngine) -> None:
    while True:
        decode.by_source["external_kv_transfer"] += 1000
        await asyncio.sleep(0)
