"""The rules of the APIs hold through a proxy before fake engines."""

import pytest

from tests.conformance.cases import CASES, MODEL
from tests.conformance.check import check
from tests.fakes.engine import FakeEngine


@pytest.mark.parametrize("name", CASES)
async def test_the_proxy_before_a_fake_pair(name, start):
    case = CASES[name]
    duet = await start(engines=[FakeEngine("prefill", model=MODEL), FakeEngine("decode", model=MODEL)])
    answer = await duet.client.request(case.method, case.path, content=case.content, headers=case.headers)
    check(case, answer)
    assert await duet.metric("duet_upstream_failures_total") == 0
    await duet.idle()
