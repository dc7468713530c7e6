"""When an instance or a pair gets no requests: the state machine, and what it does to requests."""

from dataclasses import replace

import pytest

from proxy.breaker import Breaker, State
from proxy.config import ProxyConfig
from proxy.pool import Pool
from proxy.settings import Breaker as Limits
from proxy.settings import FailurePolicy, Settings
from proxy.topology import Instance, Role, Topology
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually, topology_of

LIMITS = Limits(failures=3, pause=1.0, longest_pause=5.0)
TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
FOR_EVER = Settings(breaker=Limits(pause=3600.0, longest_pause=3600.0))


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker(LIMITS)
    breaker.fail(at, "died", answers=False, at_once=True)
    return breaker


def test_failures_in_a_row_open_it_and_a_success_between_them_does_not():
    breaker = Breaker(LIMITS)
    opens = [breaker.fail(0.0, "slow", answers=False) for _ in range(2)]
    breaker.succeed()
    opens += [breaker.fail(0.0, "slow", answers=False) for _ in range(3)]
    assert opens == [False, False, False, False, True]
    assert (breaker.state(0.5), breaker.admits(0.5), breaker.reason) == (State.OPEN, False, "slow")


def test_after_the_pause_one_request_tries():
    breaker = opened()
    assert (breaker.state(1.0), breaker.admits(1.0)) == (State.HALF_OPEN, True)
    assert breaker.begin()
    assert not breaker.admits(1.0)
    assert not breaker.begin()


def test_a_trial_that_shows_nothing_lets_the_next_one_try():
    breaker = opened()
    breaker.begin()
    breaker.give_back()
    assert breaker.admits(1.0)


def test_the_pause_doubles_up_to_its_bound_and_a_success_ends_all():
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(5):
        pause = next(p for p in range(100) if breaker.admits(now + p))
        pauses.append(pause)
        now += pause
        breaker.begin()
        breaker.fail(now, "still dead", answers=False)
        breaker.give_back()
    assert pauses == [1, 2, 4, 5, 5]
    breaker.succeed()
    assert (breaker.state(now), breaker.reason) == (State.CLOSED, "")


def test_requests_that_were_on_their_way_do_not_lengthen_the_pause():
    breaker = opened()
    assert not breaker.fail(0.5, "died", answers=False)
    assert breaker.admits(1.0)


def test_an_instance_that_only_begins_well_opens_it_at_its_next_failure():
    breaker = opened()
    breaker.begin()
    breaker.speaks()
    assert breaker.state(1.0) is State.CLOSED
    assert breaker.fail(1.0, "cut", answers=False)


async def test_a_dead_decode_gets_one_request_and_no_more_before_any_probe(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, settings=FOR_EVER)
    await engines[1].stop()
    answers = [await duet.client.post("/v1/completions", json=TEXT) for _ in range(4)]
    assert [(a.status_code, a.headers["x-duet-decode"]) for a in answers] == [(200, "decode-1")] * 4
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1
    assert await duet.metric("duet_breaker_open", engine="decode-0") == 1
    state = next(i for i in (await duet.ready())["instances"] if i["name"] == "decode-0")
    assert (state["breaker"], state["reason"]) == ("open", "decode-0: cannot be reached")


async def test_it_closes_again_when_the_instance_is_back(start):
    quick = Settings(breaker=Limits(pause=0.01, longest_pause=0.01))
    engines = [FakeEngine("prefill"), FakeEngine("decode")]
    duet = await start(engines=engines, settings=quick, policy=FailurePolicy.FAIL)
    await engines[1].stop()
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 502
    await engines[1].start()
    while (await duet.client.post("/v1/completions", json=TEXT)).status_code != 200:
        pass
    assert await duet.metric("duet_breaker_open") == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_pair_that_fails_is_avoided_while_both_go_on_with_others(start, stream):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, settings=FOR_EVER)
    body = TEXT | {"stream": stream}
    engines[1].kv_fails = True
    answers = [await duet.client.post("/v1/completions", json=body) for _ in range(12)]
    paths = [(a.headers["x-duet-path"], a.headers["x-duet-decode"]) for a in answers]
    assert {a.status_code for a in answers} == {200}
    assert sum(path == "aggregated" for path, _ in paths) == 3
    assert set(paths[-4:]) == {("pd", "decode-1")}
    assert await duet.metric("duet_pair_breaker_open", prefill="prefill-0", decode="decode-0") == 1
    assert await duet.metric("duet_breaker_open") == 0


async def test_when_all_pairs_fail_requests_say_so(start):
    duet = await start(settings=FOR_EVER)
    duet.decode.kv_fails = True
    answers = [await duet.client.post("/v1/completions", json=TEXT) for _ in range(4)]
    assert [a.headers["x-duet-bypass"] for a in answers] == ["decode_failed"] * 3 + ["no_pair"]
    assert len(duet.prefill.seen) == 3
    assert (await duet.ready())["modes"] == {"pd": False, "aggregated": True}


async def test_one_bad_question_does_not_shut_out_others_from_the_only_instance(start):
    engine = FakeEngine("aggregated")
    duet = await start(engines=[engine], settings=FOR_EVER)
    engine.faults.extend(Fault(status=500) for _ in range(5))
    statuses = [(await duet.client.post("/v1/completions", json=TEXT)).status_code for _ in range(6)]
    assert statuses == [500] * 5 + [200]


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429])
async def test_what_is_the_clients_fault_is_no_evidence(start, status):
    duet = await start(settings=FOR_EVER, policy=FailurePolicy.FAIL)
    duet.prefill.faults.extend(Fault(status=status) for _ in range(5))
    assert {(await duet.client.post("/v1/completions", json=TEXT)).status_code for _ in range(5)} == {status}
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"


async def test_streams_that_break_open_it_though_they_began_well(start):
    duet = await start(settings=FOR_EVER)
    duet.decode.faults.extend(Fault(cut_after=2) for _ in range(3))
    for _ in range(3):
        answer = await duet.client.post("/v1/completions", json=TEXT | {"stream": True})
        assert b'"error"' in answer.content
    assert (await duet.client.post("/v1/completions", json=TEXT)).status_code == 503


async def test_decode_that_shuts_down_is_to_blame_itself(start):
    duet = await start(settings=FOR_EVER)
    duet.decode.faults.append(Fault(ending=Ending("abort")))
    await duet.client.post("/v1/completions", json=TEXT)
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0", kind="aborted") == 1


async def test_kv_that_one_decode_cannot_be_asked_to_take_goes_to_another(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, settings=FOR_EVER)
    await engines[1].stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.headers["x-duet-path"], answer.headers["x-duet-decode"]) == ("pd", "decode-1")
    assert len(engines[0].seen) == 1
    assert await duet.metric("duet_kv_stranded_total") == 0


async def test_kv_that_nobody_can_take_is_counted(start):
    duet = await start(settings=FOR_EVER)
    await duet.decode.stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 502
    assert await duet.metric("duet_kv_stranded_total") == 1
    assert await duet.metric("duet_in_flight") == 0


async def standings(duet) -> dict:
    pairs = (await duet.client.get("/pairs")).json()["pairs"]
    return {pair["decode"]: (pair["standing"], pair["handed_over"], pair["failed"]) for pair in pairs}


@pytest.mark.parametrize("stream", [False, True])
async def test_each_pair_shows_how_its_hand_overs_went(start, stream):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines, settings=FOR_EVER)
    assert await standings(duet) == {"decode-0": ("untried", 0, 0), "decode-1": ("untried", 0, 0)}
    engines[1].kv_fails = True
    for _ in range(12):
        await duet.client.post("/v1/completions", json=TEXT | {"stream": stream})
    seen = await standings(duet)
    assert seen["decode-0"] == ("out", 0, 3)
    assert seen["decode-1"] == ("working", 9, 0)
    assert await duet.metric("duet_handovers_total", decode="decode-0", outcome="failed") == 3
    assert await duet.metric("duet_handovers_total", decode="decode-1", outcome="ok") == 9
    reasons = [pair["reason"] for pair in (await duet.client.get("/pairs")).json()["pairs"]]
    assert reasons == ["decode-0: the engine answered 500", ""]


async def test_a_restarted_instance_begins_anew_in_all_its_pairs(start):
    duet = await start(settings=FOR_EVER, probe_interval=0.05)
    await duet.client.post("/v1/completions", json=TEXT)
    assert await standings(duet) == {"decode-0": ("working", 1, 0)}
    await duet.prefill.stop()
    await eventually(lambda: duet.metric("duet_instance_healthy", engine="prefill-0"), 0)
    await duet.prefill.start()
    await eventually(lambda: duet.metric("duet_instance_healthy", engine="prefill-0"), 1)
    assert await standings(duet) == {"decode-0": ("untried", 0, 0)}


def test_a_trial_is_given_back_to_the_breaker_that_it_tried():
    config = ProxyConfig(topology_of([]))
    pool = Pool(replace(config, topology=Topology((Instance("decode-0", Role.DECODE, "http://127.0.0.1:1"),))))
    (member,) = pool.members
    member.breaker = opened(at=-100.0)
    with pool.using(member):
        pool.forgive(member)
        member.breaker.fail(0.0, "died again", answers=False, at_once=True)
        assert member.breaker.begin()
    assert not member.breaker.begin()
