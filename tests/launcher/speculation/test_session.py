"""A tuning of a deployment that is really started, with engines that are fakes, and all its files."""

import json

from launcher import loader
from launcher.measure.workload_file import Work
from launcher.speculation import session
from launcher.speculation.evidence_file import from_data
from launcher.speculation.record import Record
from launcher.speculation.report import page
from launcher.speculation.save import save
from launcher.speculation.session import Asked
from tests.launcher.measure.test_compare_run import WORK


async def test_each_k_is_started_and_the_profile_is_written_with_evidence_that_can_be_measured_again(profile, tmp_path):
    before, said = profile.read_text(), []
    asked = Asked(str(profile), (), "tiny", ks=(2,), concurrencies=(2,), seconds=1.0, rounds=1)

    tuned = await session.session(
        asked, WORK, tmp_path / "work", None, lambda *_: None, said.append, "launcher tune speculation"
    )

    starts = [line for line in said if line.startswith("sweep")]
    assert [line.rpartition(": ")[2] for line in starts] == ["off", "ngram k2", "off"]
    evidence, _ = save(tuned.drafted, tuned.evidence, tuned.context)
    written = json.loads(evidence.read_text())
    assert from_data(written).profile == profile.stem
    assert written["context"]["conditions"]["versions"]["vllm"] == "0.32.0"
    assert (loader.load(str(profile)).speculation is None) == (tuned.evidence.k == 0)
    assert tuned.evidence.k or profile.read_text() == before
    assert session.again(evidence) == (asked, Work(WORK.name, WORK.workload, ()))
    session.finish(tmp_path / "work")
    assert Record(tmp_path / "work", {"profile": "as it is now"}).visits == [], "the next tuning begins anew"
    assert "launcher tune speculation" in page.render(tuned.evidence, tuned.context)
