"""Two servers are measured by turns with the same requests, and the report can be made again from its own file."""

import json
from pathlib import Path

import pytest

from launcher.errors import MeasureError
from launcher.measure.compare_asked import Asked, BlockTold, Served
from launcher.measure.compare_failures import more_failures
from launcher.measure.compare_report import told
from launcher.measure.compare_run import run
from launcher.measure.compare_shape import Comparison, Side, Verdict
from launcher.measure.load import Closed
from launcher.measure.workload import Workload
from launcher.measure.workload_file import Work
from tests.fakes.engine import FakeEngine

WORK = Work(
    "tiny",
    Workload.model_validate_json(
        json.dumps(
            {
                "parts": [
                    {"ask": "write", "chat": False, "prompt_words": {"constant": 8}, "output_tokens": {"constant": 4}}
                ]
            }
        )
    ),
)


def asked(a: FakeEngine, b: FakeEngine, **more) -> Asked:
    usual = {"load": Closed(2), "pairs": 2, "seconds": 0.4}
    return Asked(Served("a", a.url), Served("b", b.url), **(usual | more))


def prompts(engine: FakeEngine) -> list[str]:
    return [json.loads(each.body)["prompt"] for each in engine.seen]


async def test_a_server_that_is_many_times_slower_is_worse(tmp_path: Path):
    async with FakeEngine() as fast, FakeEngine(pace=0.1) as slow:
        found = await run(asked(fast, slow, pairs=3, seconds=1.0), WORK, tmp_path, "launcher compare")
    verdicts = {each.metric.name: each.verdict for each in found.comparison.effects}
    assert verdicts["throughput"] is Verdict.WORSE
    assert found.comparison.verdict is Verdict.WORSE
    assert [each.side for each in found.blocks] == [Side.A, Side.B, Side.B, Side.A, Side.A, Side.B]


async def test_both_sides_of_a_pair_get_the_same_requests_and_another_pair_others(tmp_path: Path):
    async with FakeEngine(pace=0.005) as one, FakeEngine(pace=0.005) as other:
        await run(asked(one, other), WORK, tmp_path, "launcher compare")
    first, second = prompts(one), prompts(other)
    assert first[:24] == second[:24], "the probes"
    assert first[24:40] == second[24:40], "the first pair"
    again = first.index(first[0], 24)
    assert not set(first[24:again]) & set(first[again + 24 :]), "no prefix cache has the second pair's"


async def test_greedy_texts_are_compared_with_how_often_a_agrees_with_itself(tmp_path: Path):
    async with FakeEngine(pace=0.005) as one, FakeEngine(pace=0.005) as other:
        found = await run(asked(one, other), WORK, tmp_path, "launcher compare")
    quality = found.comparison.quality
    assert quality is not None
    assert (quality.kind, quality.items, quality.a, quality.b) == ("agreement", 24, 1.0, 1.0)


async def test_a_report_is_made_again_from_its_own_file(tmp_path: Path):
    async with FakeEngine(pace=0.005) as one, FakeEngine(pace=0.005) as other:
        first = await run(asked(one, other), WORK, tmp_path, "launcher compare")
        again, work = told.again(told.document(first).encode(), "report.json")
        second = await run(again, work, tmp_path, "launcher compare")
    assert again == first.asked
    assert second.sent == first.sent
    assert "TTFT" in told.html(first)


def test_a_file_that_is_no_report_is_refused():
    with pytest.raises(MeasureError, match=r"no report\.json of `launcher compare`"):
        told.again(b"{}", "x.json")


def test_a_side_that_fails_more_often_is_worse_however_fast_it_is():
    of = Comparison("a", "b", (), None, Verdict.BETTER, "b against a: better. So.")
    blocks = [BlockTold(Side.A, 0, 1000, 0, {}, None), BlockTold(Side.B, 0, 1000, 40, {}, None)]
    found = more_failures(of, blocks)
    assert found.verdict is Verdict.TRADED
    assert "40 of 1000 requests against 0 of 1000" in found.sentence
    few = [BlockTold(Side.A, 0, 1000, 0, {}, None), BlockTold(Side.B, 0, 1000, 1, {}, None)]
    assert more_failures(of, few) is of
