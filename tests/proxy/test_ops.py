"""Health, readiness, metrics and models."""

import logging

import pytest

from proxy.settings import FailurePolicy
from tests.fakes import answers
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually

TEXT = {"model": "fake", "prompt": "a secret prompt", "max_tokens": 5}


async def test_ready_names_the_modes_and_every_instance(duet):
    answer = await duet.client.get("/ready")
    assert answer.status_code == 200
    state = answer.json()
    assert state["ready"]
    assert state["modes"] == {"pd": True, "aggregated": True}
    assert state["instances"][0] == {
        "name": "prefill-0",
        "role": "prefill",
        "pool": "main",
        "url": duet.prefill.url,
        "healthy": True,
        "draining": False,
        "breaker": "closed",
        "in_flight": 0,
        "reason": "",
    }
    assert await duet.metric("duet_instance_healthy", engine="decode-0", role="decode") == 1


@pytest.mark.parametrize("path", ["/health", "/ready", "/pairs", "/overview", "/metrics", "/metrics/engines", "/ui/"])
async def test_head_asks_the_proxy_itself_and_is_answered_without_a_body(duet, path):
    answer = await duet.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert "x-duet-decode" not in answer.headers


@pytest.mark.parametrize(("policy", "status"), [(FailurePolicy.AGGREGATE, 200), (FailurePolicy.FAIL, 503)])
async def test_without_prefill_readiness_follows_the_policy(start, policy, status):
    prefill = FakeEngine("prefill")
    prefill.health = 503
    duet = await start(engines=[prefill, FakeEngine("decode")], policy=policy)
    answer = await duet.client.get("/ready")
    assert answer.status_code == status
    assert answer.json()["modes"] == {"pd": False, "aggregated": policy is FailurePolicy.AGGREGATE}
    assert answer.json()["instances"][0]["reason"] == "its health check fails"
    assert (await duet.client.get("/health")).status_code == 200


async def test_an_instance_that_dies_and_comes_back_is_noticed(start):
    duet = await start(probe_interval=0.02)

    async def modes() -> dict:
        return (await duet.ready())["modes"]

    await duet.prefill.stop()
    await eventually(modes, {"pd": False, "aggregated": True})
    await duet.prefill.start()
    await eventually(modes, {"pd": True, "aggregated": True})


async def test_in_flight_requests_are_seen_while_they_run(duet):
    duet.decode.faults.append(Fault(stall_after=1))
    async with duet.client.stream("POST", "/v1/completions", json={**TEXT, "stream": True}):
        in_flight = [instance["in_flight"] for instance in (await duet.ready())["instances"]]
        assert in_flight == [0, 1]
    await duet.idle()


async def test_models_are_the_engines_own_answer(duet):
    answer = await duet.client.get("/v1/models", headers={"authorization": "Bearer k"})
    assert answer.json() == answers.models("fake")
    assert answer.headers["content-type"] == "application/json"
    assert duet.decode.asked_models[-1].header("authorization") == "Bearer k"


async def test_models_come_from_an_instance_that_can_answer(duet):
    await duet.decode.stop()
    assert (await duet.client.get("/v1/models")).json() == answers.models("fake")
    await duet.prefill.stop()
    assert (await duet.client.get("/v1/models")).status_code == 502


async def test_models_without_an_instance_are_unavailable(start):
    duet = await start(engines=[])
    answer = await duet.client.get("/v1/models")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


async def test_a_request_is_one_line_in_the_log_without_prompt_or_secret(duet, caplog):
    caplog.set_level(logging.DEBUG, logger="proxy")
    headers = {"authorization": "Bearer hidden", "x-request-id": "mine"}
    await duet.client.post("/v1/completions", json={**TEXT, "stream": True}, headers=headers)
    await duet.idle()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "proxy.api.finish"]
    assert line.startswith("request_id=mine-")
    assert (
        "endpoint=completions client=- status=200 path=pd prefill=prefill-0 decode=decode-0 bypass=- failure=- ttft_ms="
        in line
    )
    assert "secret" not in caplog.text
    assert "hidden" not in caplog.text
