"""Each fault of an engine or a network is named, with its evidence, and nothing else is."""

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.doctor.examine import examine
from launcher.doctor.look import look_at_proxy
from launcher.doctor.sight import Sight
from proxy.reference import dump
from proxy.settings import Reference as Where
from tests.fakes.engine import FakeEngine
from tests.launcher.doctor.injected import CALM, INJECTIONS, Injection


async def seen(start, injection: Injection, folder: Path) -> Sight:
    prefill, decode = FakeEngine("prefill"), FakeEngine("decode")
    injection.before(prefill, decode)
    options = {"settings": CALM, "probe_interval": 0.02, **injection.options}
    if injection.reference is not None:
        file = folder / "answers.json"
        file.write_text(dump(injection.reference))
        options["settings"] = replace(CALM, reference=Where(str(file), interval=0.01))
    duet = await start(engines=[prefill, decode], **options)
    await injection.inject(duet)
    return await look_at_proxy(duet.url, 0, {})


@pytest.mark.parametrize("name", INJECTIONS)
async def test_a_fault_is_named(start, tmp_path, name):
    sight = await seen(start, INJECTIONS[name], tmp_path)
    findings = examine(sight)
    assert {finding.problem.id for finding in findings} == INJECTIONS[name].named, findings
    assert all(evidence.text and evidence.where for finding in findings for evidence in finding.evidence)
