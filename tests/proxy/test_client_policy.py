"""The failure policy that one request asks for."""

import pytest

from proxy.client_policy import policy_of
from proxy.errors import PolicyNotAllowed
from proxy.settings import FailurePolicy, Settings
from tests.fakes.engine import Fault

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
STRICT_ALLOWED = Settings(client_policies=(FailurePolicy.FAIL,))


def test_without_the_header_the_deployments_policy_holds():
    assert policy_of(None, STRICT_ALLOWED) is FailurePolicy.AGGREGATE


@pytest.mark.parametrize("asked", ["retry", "FAIL", "", "x" * 1000])
def test_what_is_not_allowed_is_refused_with_what_is(asked):
    with pytest.raises(PolicyNotAllowed, match="allowed: aggregate, fail") as refused:
        policy_of(asked, STRICT_ALLOWED)
    assert len(str(refused.value)) < 200


async def test_a_client_that_wants_pd_or_nothing_gets_the_error(start):
    duet = await start(settings=STRICT_ALLOWED)
    for headers, status in (({"X-Duet-Failure-Policy": "fail"}, 502), ({}, 200)):
        duet.prefill.faults.append(Fault(kv=None))
        answer = await duet.client.post("/v1/completions", json=TEXT, headers=headers)
        assert answer.status_code == status
    assert all(seen.header("x-duet-failure-policy") is None for seen in duet.prefill.seen)


async def test_a_policy_that_is_not_allowed_is_the_clients_error(start):
    duet = await start()
    answer = await duet.client.post("/v1/completions", json=TEXT, headers={"X-Duet-Failure-Policy": "retry"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400)
    assert not duet.prefill.seen
