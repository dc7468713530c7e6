"""Engines that fail before the first byte of the answer."""

import json
import logging

import pytest

from proxy.settings import Admission, FailurePolicy, Leg, Settings, Timeouts
from tests.fakes import answers
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
ERROR = answers.error("Internal server error", "InternalServerError", code=500)
KV_LOAD_FAILED = Fault(first_event=answers.event(ERROR))
QUICK = Timeouts(prefill=Leg(first_byte=0.5), decode=Leg(first_byte=0.5), whole_answer=0.5)

PREFILL_FAULTS = [
    (Fault(status=500), "prefill_failed", "error", 500),
    (Fault(status=503), "prefill_failed", "error", 503),
    (Fault(hang=True), "prefill_failed", "timeout", 504),
    (Fault(cut_after=0), "prefill_failed", "cut", 502),
    (Fault(ending=Ending("abort")), "prefill_failed", "aborted", 503),
    (Fault(kv=None), "prefill_without_kv", "without_kv", 502),
    (Fault(kv={"remote_block_ids": None}), "prefill_without_kv", "without_kv", 502),
    (Fault(kv={"remote_host": None}), "prefill_without_kv", "without_kv", 502),
]


def assert_served_alone(duet, answer, reason: str) -> None:
    assert answer.status_code == 200
    assert answer.headers["x-duet-path"] == "aggregated"
    assert answer.headers["x-duet-bypass"] == reason
    assert json.loads(duet.decode.seen[-1].body) == json.loads(answer.request.content)
    assert not duet.decode.died.is_set()


@pytest.mark.parametrize(("fault", "reason", "kind", "status"), PREFILL_FAULTS)
async def test_when_prefill_fails_decode_serves_alone(start, fault, reason, kind, status):
    duet = await start(timeouts=QUICK if fault.hang else None)
    duet.prefill.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    assert_served_alone(duet, answer, reason)
    assert answer.text.endswith("data: [DONE]\n\n")
    assert await duet.metric("duet_upstream_failures_total", engine="prefill-0", kind=kind) == 1
    assert await duet.metric("duet_prefill_without_kv_total") == (kind == "without_kv")
    assert await duet.metric("duet_pd_bypassed_total", reason=reason) == 1
    await duet.idle()


@pytest.mark.parametrize(("fault", "reason", "kind", "status"), PREFILL_FAULTS)
async def test_under_the_policy_fail_a_failed_prefill_is_the_clients_error(start, fault, reason, kind, status):
    duet = await start(policy=FailurePolicy.FAIL, timeouts=QUICK if fault.hang else None)
    duet.prefill.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert duet.decode.seen == []
    assert "x-duet-path" not in answer.headers
    assert await duet.metric("duet_requests_total", path="none", status=str(status)) == 1
    await duet.idle()


DECODE_FAULTS = [
    ({"stream": False}, Fault(status=500)),
    ({"stream": True}, Fault(status=503)),
    ({"stream": True}, KV_LOAD_FAILED),
    ({"stream": True}, Fault(ending=Ending("abort"))),
    ({"stream": False}, Fault(ending=Ending("abort"))),
    ({"stream": False}, Fault(status=200, body=json.dumps(ERROR).encode())),
]


@pytest.mark.parametrize(("extra", "fault"), DECODE_FAULTS)
async def test_when_decode_fails_with_handed_over_kv_it_serves_alone(duet, extra, fault):
    duet.decode.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json={**TEXT, **extra})
    assert_served_alone(duet, answer, "decode_failed")
    assert (len(duet.prefill.seen), len(duet.decode.seen)) == (1, 2)
    await duet.idle()


@pytest.mark.parametrize(("extra", "fault"), DECODE_FAULTS)
async def test_under_the_policy_fail_a_failed_decode_has_a_true_status(start, extra, fault):
    duet = await start(policy=FailurePolicy.FAIL)
    duet.decode.faults.append(fault)
    answer = await duet.client.post("/v1/completions", json={**TEXT, **extra})
    assert answer.status_code in (500, 503)
    assert "error" in answer.json()
    assert len(duet.decode.seen) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reason", ["error", "abort"])
async def test_a_chat_that_fails_after_its_role_was_named_is_served_alone(duet, reason, stream):
    duet.decode.faults.append(Fault(ending=Ending(reason)))
    body = {"model": "fake", "messages": [{"role": "user", "content": "one two"}], "max_tokens": 5, "stream": stream}
    answer = await duet.client.post("/v1/chat/completions", json=body)
    assert_served_alone(duet, answer, "decode_failed")
    assert answer.text.count("[DONE]") == (1 if stream else 0)


async def test_decode_is_tried_alone_once_only(duet):
    duet.decode.faults.extend([KV_LOAD_FAILED, KV_LOAD_FAILED])
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    assert (answer.status_code, answer.json()) == (500, ERROR)
    assert (len(duet.prefill.seen), len(duet.decode.seen)) == (1, 2)


async def test_an_error_of_the_client_as_first_event_is_its_400(duet):
    duet.decode.faults.append(Fault(first_event=answers.event(answers.error("bad"))))
    answer = await duet.client.post("/v1/completions", json={**TEXT, "stream": True})
    assert (answer.status_code, answer.json()) == (400, answers.error("bad"))
    assert len(duet.decode.seen) == 1
    assert await duet.metric("duet_upstream_failures_total") == 0


async def test_a_dead_decode_is_a_bad_gateway(duet):
    await duet.decode.stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"].startswith("decode-0: ")
    assert duet.decode.url not in answer.text
    await duet.idle()


async def test_a_silent_decode_is_a_gateway_timeout(start):
    duet = await start(timeouts=QUICK)
    duet.decode.faults.append(Fault(hang=True))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 504
    assert len(duet.decode.seen) == 1
    await duet.idle()


async def test_an_answer_cut_in_the_middle_never_looks_complete(duet):
    duet.decode.faults.append(Fault(cut_after=0))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 502


async def test_another_instance_serves_alone_what_a_decode_failed(start):
    engines = [FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    duet = await start(engines=engines)
    engines[1].faults.append(Fault(status=500))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert_served_alone(duet, answer, "decode_failed")
    assert answer.headers["x-duet-decode"] == "decode-1"


async def test_a_dead_prefill_found_by_the_request_is_passed_by(duet):
    await duet.prefill.stop()
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert_served_alone(duet, answer, "prefill_failed")


async def test_without_a_healthy_prefill_the_policy_decides(start):
    for policy in FailurePolicy:
        prefill = FakeEngine("prefill")
        prefill.health = 503
        duet = await start(engines=[prefill, FakeEngine("decode")], policy=policy)
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert duet.prefill.seen == []
        if policy is FailurePolicy.AGGREGATE:
            assert_served_alone(duet, answer, "no_prefill")
        else:
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "2"


async def test_without_any_instance_the_client_is_told_to_come_back(start):
    duet = await start(engines=[])
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["error"]["type"] == "ServiceUnavailableError"


async def test_an_aggregated_instance_takes_over_for_a_dead_decode(start):
    decode, whole = FakeEngine("decode"), FakeEngine("aggregated")
    decode.health = 500
    duet = await start(engines=[FakeEngine("prefill"), decode, whole])
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.headers["x-duet-bypass"] == "no_decode"
    assert answer.headers["x-duet-decode"] == "aggregated-0"


@pytest.mark.parametrize(
    ("path", "place"), [("/v1/completions", "proxy.api.completions"), ("/echo", "proxy.api.passthrough")]
)
async def test_a_defect_of_the_proxy_is_told_and_counted_and_takes_no_place_for_ever(
    start, monkeypatch, caplog, path, place
):
    caplog.set_level(logging.INFO)
    duet = await start(settings=Settings(admission=Admission(concurrency=1, queue=0)))

    def defect(*_: object) -> str:
        raise RuntimeError("a defect")

    with monkeypatch.context() as broken:
        broken.setattr(f"{place}.target_of", defect)
        for _ in range(2):
            answer = await duet.client.post(path, json=TEXT)
            assert (answer.status_code, answer.json()["error"]["type"]) == (500, "InternalServerError")
    assert caplog.text.count("failure=defect") == 2
    assert await duet.metric("duet_requests_total", status="500") == 2
    assert (await duet.client.post(path, json=TEXT)).status_code == 200


async def test_a_defect_after_prefill_is_answered_with_the_way_the_request_went(duet, monkeypatch):
    def defect(*_: object) -> bytes:
        raise RuntimeError("a defect")

    monkeypatch.setattr("proxy.completion.decode_body", defect)
    answer = await duet.client.post("/v1/completions", json=TEXT, headers={"x-request-id": "mine"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "mine")
    assert answer.headers["x-duet-prefill"] == "prefill-0"
