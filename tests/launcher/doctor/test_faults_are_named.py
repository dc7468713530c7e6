"""Each fault of an engine or a network is named, with its evidence, and nothing else is."""

import pytest

from launcher.doctor.examine import examine
from launcher.doctor.look import look_at_proxy
from launcher.doctor.sight import Sight
from tests.fakes.engine import FakeEngine
from tests.launcher.doctor.injected import INJECTIONS, PROMPT, Injection
from tests.proxy.conftest import Duet


async def seen(start, injection: Injection) -> tuple[Duet, Sight]:
    prefill, decode = FakeEngine("prefill"), FakeEngine("decode")
    injection.before(prefill, decode)
    options = {"settings": PROMPT, "probe_interval": 0.02, **injection.options}
    duet = await start(engines=[prefill, decode], **options)
    await injection.inject(duet)
    return duet, await look_at_proxy(duet.url, 0)


@pytest.mark.parametrize("name", INJECTIONS)
async def test_a_fault_is_named(start, name):
    _, sight = await seen(start, INJECTIONS[name])
    findings = examine(sight)
    assert {finding.problem.id for finding in findings} == INJECTIONS[name].named, findings
    assert all(evidence.text and evidence.where for finding in findings for evidence in finding.evidence)
