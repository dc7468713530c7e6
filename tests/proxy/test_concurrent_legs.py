"""Connectors whose legs run side by side: decode is asked at once, and waits for prefill's KV."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from proxy.settings import Breaker, FailurePolicy, Leg, Settings, Timeouts
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault
from tests.fakes.transfer import Fabric
from tests.proxy.conftest import Duet, eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
QUICK = Timeouts(prefill=Leg(first_byte=0.5))
ROUTES = {
    "/v1/completions": TEXT,
    "/v1/chat/completions": {"model": "fake", "messages": [{"role": "user", "content": "one two"}], "max_tokens": 5},
    "/v1/responses": {"model": "fake", "input": "one two", "max_output_tokens": 5},
    "/v1/messages": {"model": "fake", "messages": [{"role": "user", "content": "one two"}], "max_tokens": 5},
}
SCRIPTED = json.loads(Fault().body)

both = pytest.mark.parametrize("connector", ["nixl-push", "mooncake"])


def engines_of(connector: str, roles: tuple[str, ...] = ("prefill", "decode")) -> list[FakeEngine]:
    fabric = Fabric()
    return [FakeEngine(role, connector=connector, fabric=fabric) for role in roles]


async def acquainted(start, connector: str, roles: tuple[str, ...] = ("prefill", "decode"), **options) -> Duet:
    """A proxy that knows who each prefill is; what the engines saw until then is forgotten."""
    engines = engines_of(connector, roles)
    duet = await start(engines=engines, **options)
    for _ in range(roles.count("prefill")):
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    for engine in engines:
        engine.seen.clear()
        engine.by_source = dict.fromkeys(engine.by_source, 0)
    return duet


async def ask_both(duet: Duet, body: dict, engine: FakeEngine, fault: Fault) -> httpx.Response:
    """One of the engines does as it is told when both have been asked."""
    gate = asyncio.Event()
    engine.faults.append(replace(fault, wait=gate))
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=body))
    await duet.prefill.saw()
    await duet.decode.saw()
    gate.set()
    return await asking


def params(engine: FakeEngine, number: int = -1) -> dict:
    return json.loads(engine.seen[number].body)["kv_transfer_params"]


@both
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
async def test_decode_is_asked_before_prefill_has_answered(start, connector, route, stream):
    duet = await acquainted(start, connector)
    alone = await duet.client.post(f"{duet.decode.url}{route}", json=ROUTES[route] | {"stream": stream})
    duet.decode.seen.clear()
    gate = asyncio.Event()
    duet.prefill.faults.append(Fault(wait=gate))
    asking = asyncio.create_task(duet.client.post(route, json=ROUTES[route] | {"stream": stream}))
    await duet.decode.saw()
    assert not asking.done()
    gate.set()
    answer = await asking
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    assert (answer.headers["x-duet-prefill"], answer.headers["x-duet-decode"]) == ("prefill-0", "decode-0")
    assert len(answer.content) == pytest.approx(len(alone.content), abs=100)
    assert duet.decode.by_source["external_kv_transfer"] > 0
    assert not duet.prefill.died.is_set()
    assert not duet.decode.died.is_set()
    assert not duet.prefill.fabric.waiting
    await duet.idle()
    assert await duet.metric("duet_handovers_total", outcome="ok") == 2


@both
async def test_both_legs_have_the_same_request_id(start, connector):
    duet = await acquainted(start, connector)
    await duet.client.post("/v1/completions", json=TEXT, headers={"x-request-id": "mine"})
    ids = {engine.seen[0].header("x-request-id") for engine in (duet.prefill, duet.decode)}
    assert len(ids) == 1
    assert ids.pop().startswith("mine-")


async def test_the_response_of_a_pushed_one_has_the_same_id_in_both_bodies(start):
    duet = await acquainted(start, "nixl-push")
    body = ROUTES["/v1/responses"] | {"request_id": "resp_of_the_client"}
    answer = await duet.client.post("/v1/responses", json=body)
    ids = {json.loads(engine.seen[0].body)["request_id"] for engine in (duet.prefill, duet.decode)}
    assert ids == {answer.json()["id"]}
    assert ids != {"resp_of_the_client"}


async def test_of_push_the_first_answer_of_prefill_tells_who_it_is(start):
    duet = await start(engines=engines_of("nixl-push"))
    duet.prefill.faults.append(Fault(kv={"tp_size": 4, "pp_size": 2}))
    await duet.client.post("/v1/completions", json=TEXT)
    await duet.client.post("/v1/completions", json=TEXT)
    for number in (0, 1):
        given = params(duet.decode, number)
        assert given.pop("remote_request_id") == duet.decode.seen[number].header("x-request-id")
        assert given == {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": duet.prefill.engine_id,
            "remote_host": "localhost",
            "remote_port": 5600,
            "tp_size": 4,
            "dcp_size": 1,
            "pp_size": 2,
            "transfer_mode": "push",
        }


async def test_mooncake_s_bootstrap_server_is_asked_once_and_both_are_told_of_one_transfer(start):
    duet = await start(engines=engines_of("mooncake"))
    for _ in range(3):
        await duet.client.post("/v1/completions", json=TEXT | {"stop": ["x"], "ignore_eos": False})
    assert duet.prefill.queries == 1
    ask, take = params(duet.prefill), params(duet.decode)
    assert ask == {"do_remote_decode": True, "do_remote_prefill": False, "transfer_id": take["transfer_id"]}
    assert take == {
        "do_remote_prefill": True,
        "do_remote_decode": False,
        "transfer_id": duet.decode.seen[-1].header("x-request-id"),
        "remote_engine_id": duet.prefill.engine_id,
        "remote_bootstrap_addr": duet.prefill.bootstrap_url,
    }
    body = json.loads(duet.prefill.seen[-1].body)
    assert (body["ignore_eos"], "stop" in body) == (True, False)
    assert len({params(duet.prefill, number)["transfer_id"] for number in range(3)}) == 3


async def test_mooncake_s_prefill_is_asked_for_the_rank_that_decode_was_told(start):
    duet = await start(engines=engines_of("mooncake"))
    await duet.client.post("/v1/completions", json=TEXT, headers={"x-data-parallel-rank": "7"})
    assert duet.prefill.seen[0].header("x-data-parallel-rank") == "0"
    assert [name for name, _ in duet.prefill.seen[0].headers].count("x-data-parallel-rank") == 1
    assert duet.decode.seen[0].header("x-data-parallel-rank") == "7"


PREFILL_FAULTS = [
    (Fault(status=500), "prefill_failed", "error", 500),
    (Fault(hang=True), "prefill_failed", "timeout", 504),
    (Fault(cut_after=0), "prefill_failed", "cut", 502),
    (Fault(ending=Ending("abort")), "prefill_failed", "aborted", 503),
]


@both
@pytest.mark.parametrize("policy", [FailurePolicy.AGGREGATE, FailurePolicy.FAIL])
@pytest.mark.parametrize(("fault", "reason", "kind", "status"), PREFILL_FAULTS)
async def test_when_prefill_fails_decode_is_let_go_at_once(start, connector, policy, fault, reason, kind, status):
    duet = await acquainted(start, connector, policy=policy, timeouts=QUICK)
    if fault.cut_after is not None:  # the KV may have gone before
        duet.decode.faults.append(Fault(hang=True))
    answer = await ask_both(duet, TEXT | {"stream": True}, duet.prefill, fault)
    await asyncio.wait_for(duet.decode.seen[0].left.wait(), 5)
    if policy is FailurePolicy.FAIL:
        assert answer.status_code == status
        assert len(duet.decode.seen) == 1
    else:
        assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, reason)
        assert json.loads(duet.decode.seen[1].body) == json.loads(answer.request.content)
    assert await duet.metric("duet_upstream_failures_total", engine="prefill-0", kind=kind) == 1
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 0
    assert await duet.metric("duet_handovers_total", outcome="failed") == 0
    await duet.idle()


async def test_a_prefill_that_lets_its_kv_go_is_without_kv(start):
    for connector, fault in (("nixl-push", Fault(kv=None)), ("mooncake", Fault(ending=Ending("stop")))):
        duet = await acquainted(start, connector)
        answer = await ask_both(duet, TEXT, duet.prefill, fault)
        assert answer.headers["x-duet-bypass"] == "prefill_without_kv"
        assert duet.decode.seen[0].left.is_set()


@both
async def test_a_prefill_that_is_gone_is_served_without(start, connector):
    duet = await acquainted(start, connector)
    await duet.prefill.stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "prefill_failed")
    await duet.idle()


@both
@pytest.mark.parametrize("policy", [FailurePolicy.AGGREGATE, FailurePolicy.FAIL])
async def test_a_prefill_that_was_started_again_unseen_costs_one_request_its_pair(start, connector, policy):
    duet = await acquainted(start, connector, policy=policy, timeouts=Timeouts(decode=Leg(first_byte=0.5)))
    duet.prefill.become_another()
    statuses = [await duet.client.post("/v1/completions", json=TEXT | {"stream": True}) for _ in range(3)]
    assert [answer.headers.get("x-duet-path") for answer in statuses][1:] == ["pd", "pd"]
    await duet.idle()


@both
@pytest.mark.parametrize("stream", [False, True])
async def test_what_decode_refuses_stops_prefill_and_is_the_client_s(start, connector, stream):
    duet = await acquainted(start, connector)
    duet.prefill.faults.append(Fault(hang=True))
    answer = await ask_both(duet, TEXT | {"stream": stream}, duet.decode, Fault(status=400))
    assert (answer.status_code, answer.json()) == (400, SCRIPTED)
    await asyncio.wait_for(duet.prefill.seen[0].left.wait(), 5)
    assert await duet.metric("duet_upstream_failures_total") == 0
    await duet.idle()


@both
async def test_what_prefill_refuses_stops_decode_and_is_the_client_s(start, connector):
    duet = await acquainted(start, connector)
    answer = await ask_both(duet, TEXT, duet.prefill, Fault(status=422))
    assert (answer.status_code, answer.json()) == (422, SCRIPTED)
    await asyncio.wait_for(duet.decode.seen[0].left.wait(), 5)
    await duet.idle()


@both
@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=503), Fault(ending=Ending("error"))])
async def test_when_decode_fails_prefill_is_stopped_and_the_pair_is_to_blame(start, connector, fault):
    duet = await acquainted(start, connector)
    if fault.status is not None:
        duet.prefill.faults.append(Fault(hang=True))
    answer = await ask_both(duet, TEXT, duet.decode, fault)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "decode_failed")
    if fault.status is not None:
        await asyncio.wait_for(duet.prefill.seen[0].left.wait(), 5)
    assert await duet.metric("duet_handovers_total", outcome="failed") == 1
    assert await duet.metric("duet_upstream_failures_total", engine="prefill-0") == 0
    await duet.idle()


@both
async def test_a_decode_that_cannot_be_reached_is_replaced_while_prefill_computes(start, connector):
    duet = await acquainted(start, connector, ("prefill", "decode", "decode"))
    await duet.engines[1].stop()
    answers = [await duet.client.post("/v1/completions", json=TEXT) for _ in range(3)]
    assert {(answer.status_code, answer.headers["x-duet-path"]) for answer in answers} == {(200, "pd")}
    assert {answer.headers["x-duet-decode"] for answer in answers} == {"decode-1"}
    assert len(duet.prefill.seen) == 3


@both
async def test_without_a_decode_prefill_is_stopped(start, connector):
    duet = await acquainted(start, connector, policy=FailurePolicy.FAIL)
    duet.prefill.faults.append(Fault(hang=True))
    await duet.decode.stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 502
    assert all([await asyncio.wait_for(seen.left.wait(), 5) for seen in duet.prefill.seen])
    await duet.idle()


@both
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_stops_both(start, connector, stream):
    duet = await acquainted(start, connector)
    duet.prefill.faults.append(Fault(hang=True))
    asking = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT | {"stream": stream}))
    await duet.prefill.saw()
    await duet.decode.saw()
    asking.cancel()
    await asyncio.wait([asking])
    for engine in (duet.prefill, duet.decode):
        await asyncio.wait_for(engine.seen[0].left.wait(), 5)
    await duet.idle()
    assert await duet.metric("duet_requests_total", status="499") == 1
    assert await duet.metric("duet_upstream_failures_total") == 0


@both
async def test_decode_that_needs_no_kv_after_all_ends_prefill_with_the_answer(start, connector):
    duet = await acquainted(start, connector)
    duet.prefill.faults.append(Fault(hang=True))
    answer = await ask_both(duet, TEXT, duet.decode, Fault(needs_no_kv=True))
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    await asyncio.wait_for(duet.prefill.seen[0].left.wait(), 5)
    await duet.idle()


@both
async def test_the_time_decode_has_is_its_own_beside_prefill_s(start, connector):
    timeouts = Timeouts(prefill=Leg(first_byte=10), decode=Leg(first_byte=0.2), whole_answer=0.2)
    duet = await acquainted(start, connector, timeouts=timeouts)
    gate = asyncio.Event()
    duet.prefill.faults.append(Fault(wait=gate))
    asyncio.get_running_loop().call_later(0.5, gate.set)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")


@both
async def test_each_try_has_an_id_of_its_own(start, connector):
    duet = await acquainted(start, connector, ("prefill", "prefill", "decode"), policy=FailurePolicy.RETRY)
    for engine in duet.engines[:2]:
        engine.faults.append(Fault(status=503))
    answer = await duet.client.post("/v1/completions", json=TEXT, headers={"x-request-id": "mine"})
    assert answer.status_code == 503
    ids = [seen.header("x-request-id") for engine in duet.engines[:2] for seen in engine.seen]
    assert len(set(ids)) == len(ids) == 2
    assert {seen.header("x-request-id") for seen in duet.decode.seen} == set(ids)
    await duet.idle()


async def test_a_bootstrap_server_that_is_away_is_a_failure_of_prefill(start):
    duet = await start(engines=engines_of("mooncake"), settings=Settings(breaker=Breaker(pause=0.01)))
    await duet.prefill.bootstrap.stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "prefill_failed")
    assert await duet.metric("duet_upstream_failures_total", engine="prefill-0", kind="unreachable") == 1
    await duet.prefill.bootstrap.start()

    async def path() -> str:
        return (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"]

    await eventually(path, "pd")


@pytest.mark.parametrize("told", [b"", b"{}", b"[]", b"null", b'{"x":{}}', b'{"0":{}}', b'{"0":[]}', b"\xff"])
async def test_a_bootstrap_server_that_names_no_engine_is_a_failure_of_prefill(start, told):
    duet = await start(engines=engines_of("mooncake"), policy=FailurePolicy.FAIL)
    duet.prefill.told = told
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 502
    assert "names no engine (status 200)" in answer.json()["error"]["message"]
    assert duet.decode.seen == []
