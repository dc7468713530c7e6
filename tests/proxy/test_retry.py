"""The policy ``retry``: other pairs, before the first byte."""

import pytest

from proxy.settings import FailurePolicy, Retry
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}


async def two_by_two(start):
    engines = [FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    return engines, await start(engines=engines, policy=FailurePolicy.RETRY)


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(kv=None), Fault(cut_after=0)])
async def test_another_prefill_is_tried(start, fault):
    (p0, p1, *_), duet = await two_by_two(start)
    p0.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 200
    assert (answer.headers["x-duet-path"], answer.headers["x-duet-prefill"]) == ("pd", "prefill-1")
    assert "x-duet-bypass" not in answer.headers
    assert (len(p0.seen), len(p1.seen)) == (1, 1)
    await duet.idle()


@pytest.mark.parametrize(
    ("fault", "stream"),
    [(Fault(status=500), False), (Fault(ending=Ending("error")), True), (Fault(ending=Ending("abort")), True)],
)
async def test_another_decode_is_tried_with_a_new_prefill(start, fault, stream):
    (p0, p1, d0, d1), duet = await two_by_two(start)
    d0.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json=TEXT | {"stream": stream})
    assert answer.status_code == 200
    assert (answer.headers["x-duet-path"], answer.headers["x-duet-decode"]) == ("pd", "decode-1")
    assert len(p0.seen) + len(p1.seen) == 2
    assert (len(d0.seen), len(d1.seen)) == (1, 1)
    await duet.idle()


async def test_a_decode_that_is_gone_is_left_out(start):
    (_, _, d0, _), duet = await two_by_two(start)
    await d0.stop()
    answers = [await duet.client.post("/v1/completions", json=TEXT) for _ in range(4)]
    assert {(a.status_code, a.headers["x-duet-decode"]) for a in answers} == {(200, "decode-1")}


async def test_a_4xx_is_never_tried_again(start):
    (p0, p1, d0, d1), duet = await two_by_two(start)
    d0.faults.append(Fault(status=400))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 400
    assert len(p0.seen) + len(p1.seen) == 1
    assert len(d0.seen) + len(d1.seen) == 1


async def test_tries_are_bounded_and_the_last_error_is_the_clients(start):
    engines = [*(FakeEngine("prefill") for _ in range(Retry().attempts + 2)), FakeEngine("decode")]
    duet = await start(engines=engines, policy=FailurePolicy.RETRY)
    for engine in engines[:-1]:
        engine.faults.append(Fault(status=503))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, "x-duet-path" in answer.headers) == (503, False)
    assert sum(len(engine.seen) for engine in engines) == Retry().attempts


async def test_when_all_were_tried_the_first_failure_counts_not_their_absence(start):
    duet = await start(policy=FailurePolicy.RETRY)
    duet.prefill.faults.append(Fault(status=500))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 500
    assert len(duet.prefill.seen) == 1


async def test_under_the_policy_aggregate_a_decode_that_is_gone_is_replaced(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines)
    await engines[1].stop()
    answers = [await duet.client.post("/v1/completions", json=TEXT) for _ in range(3)]
    assert {(a.status_code, a.headers["x-duet-decode"]) for a in answers} == {(200, "decode-1")}
