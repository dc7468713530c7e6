"""A tuning from its first start to its verdict, with servers that exist as models only."""

import json
from dataclasses import replace

import numpy as np
import pytest

from launcher.errors import MeasureError
from launcher.measure.interval import Interval
from launcher.plain import plain
from launcher.speculation.evidence_file import from_data, to_data
from launcher.speculation.record import Record
from launcher.speculation.schedule import k_at
from launcher.speculation.setting import Visit
from launcher.speculation.starts import sweep
from launcher.speculation.tune import Wanted, drifts, tune
from tests.launcher.speculation.simulator import PUBLISHED, measured

LOADS, KS = (1, 4, 8, 32), (1, 2, 4, 8)
WANTED = Wanted("mine", ("eagle",), KS, LOADS, {0.0: 1.0}, engines=1, largest=64, seed=0)


class Served:
    """A visitor: each load's K is what the setting says for that batch; ``slower``: what a schedule
    leaves of the goodput, by load and whether it drafts there."""

    def __init__(self, model=PUBLISHED, noise=0.01, seed=0, slower=None, dies_after=None, fails=False):
        self.model, self.noise, self.rng = model, noise, np.random.default_rng(seed)
        self.slower, self.left, self.fails = slower or {}, dies_after, fails
        self.starts = []

    async def __call__(self, start, cells, add):
        self.starts.append(start)
        for cell in cells:
            if self.left == 0:
                raise KeyboardInterrupt
            self.left = None if self.left is None else self.left - 1
            setting = start.setting
            k = k_at(setting.schedule, cell.concurrency) if setting.schedule else setting.k
            point = measured(self.model, setting.method, k, cell.concurrency, self.rng, self.noise)
            lost = self.slower.get((cell.concurrency, k > 0), 1.0) if setting.schedule else 1.0
            rate = replace(
                point.goodput, **{name: lost * getattr(point.goodput, name) for name in ("value", "low", "high")}
            )
            point = replace(point, method=setting.method, k=setting.k, goodput=rate, throughput=rate)
            add(Visit(start.stage, start.number, setting.name, replace(point, failed=100 if self.fails else 0)))


def record(folder, **settings):
    return Record(folder, {"profile": "mine", **settings})


async def tuned(folder, served, wanted=WANTED):
    said = []
    found = await tune(wanted, served, record(folder), said.append)
    return found, said


@pytest.mark.parametrize("seed", range(8))
async def test_the_schedule_is_within_3_percent_of_the_best_fixed_k_at_every_load(tmp_path, seed):
    found, _ = await tuned(tmp_path, Served(seed=seed, noise=0.03))
    for load in LOADS:
        mine = PUBLISHED.throughput(load, k_at(found.schedule, load))
        assert mine >= 0.97 * max(PUBLISHED.throughput(load, k) for k in (0, *KS))
    assert k_at(found.schedule, 1) > 0
    assert k_at(found.schedule, 32) == 0


async def test_what_was_chosen_is_started_again_and_its_gain_is_what_it_then_gave(tmp_path):
    found, _ = await tuned(tmp_path, Served())
    assert all("the schedule itself gave" in each.reason for each in found.choices)
    (alone, *_, many) = found.choices
    assert alone.gain.value == pytest.approx(PUBLISHED.throughput(1, alone.k) / PUBLISHED.throughput(1, 0), rel=0.03)
    assert many.gain.value == pytest.approx(1.0, rel=0.03)


async def test_a_schedule_that_collapses_where_drafting_ends_is_given_up_when_no_k_pays_there(tmp_path):
    found, said = await tuned(tmp_path, Served(slower={(32, False): 0.6}))
    assert any(line.startswith("corrected: at 32") for line in said)
    assert found.schedule == ()
    assert "although K is 0 there" in found.verdict


async def test_a_schedule_that_collapses_where_drafting_ends_drafts_on_when_that_costs_nothing(tmp_path):
    level = replace(PUBLISHED, step=replace(PUBLISHED.step, token=0.00001), acceptance=0.3)
    found, _ = await tuned(tmp_path, Served(level, noise=0.002, slower={(each, False): 0.6 for each in LOADS}))
    assert all(each.gain.value > 0.97 for each in found.choices)


async def test_a_k_that_gives_less_in_the_schedule_than_alone_becomes_0_there(tmp_path):
    found, said = await tuned(tmp_path, Served(slower={(1, True): 0.5}))
    assert any(line.startswith("corrected: at 1 at once") for line in said)
    assert k_at(found.schedule, 1) == 0
    assert k_at(found.schedule, 4) > 0


async def test_a_draft_that_is_never_accepted_ends_with_the_verdict_not_to_speculate(tmp_path):
    served = Served(model=replace(PUBLISHED, acceptance=0.05))
    found, _ = await tuned(tmp_path, served)
    assert (found.method, found.k, found.schedule) == ("off", 0, ())
    assert not [each for each in served.starts if each.stage.startswith("confirm")]


async def test_a_tuning_that_was_killed_goes_on_and_measures_nothing_twice(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        await tuned(tmp_path, Served(dies_after=10))
    with (tmp_path / "visits.jsonl").open("a") as file:
        file.write('{"stage": "sweep 1", "num')  # a line that was not complete
    again = Served()
    await tuned(tmp_path, again)
    lines = [json.loads(line) for line in (tmp_path / "visits.jsonl").read_text().splitlines()[1:]]
    keys = [(each["stage"], each["number"], each["point"]["concurrency"]) for each in lines]
    assert len(keys) == len(set(keys))
    assert [each.number for each in again.starts if each.stage == "sweep 1"] == [2, 3, 4, 5], (
        "10 loads: 2 starts and a half"
    )
    third = Served(dies_after=0)
    await tuned(tmp_path, third)
    assert third.starts == [], "all is known"


def test_lines_of_another_tuning_are_refused_with_what_differs(tmp_path):
    record(tmp_path, seconds=20)
    with pytest.raises(MeasureError, match=r"another tuning \(seconds differ\)"):
        record(tmp_path, seconds=30)


def test_a_record_that_is_none_is_refused(tmp_path):
    (tmp_path / "visits.jsonl").write_text("nonsense\n")
    with pytest.raises(MeasureError, match="remove the file to begin again"):
        record(tmp_path)


async def test_failing_requests_end_the_tuning_with_the_setting_that_failed(tmp_path):
    with pytest.raises(MeasureError, match="failed with off"):
        await tuned(tmp_path, Served(fails=True))


def test_a_k_0_that_is_slower_at_the_end_is_told():
    first, last = (
        Visit("sweep 1", number, "off", measured(PUBLISHED, "eagle", 0, 4, np.random.default_rng(0), 0.01))
        for number in (0, 9)
    )
    assert drifts([first, last]) == ()
    half = replace(last.point, goodput=Interval(0.5 * first.point.goodput.value, 0, 99))
    (said,) = drifts([first, replace(last, point=half)])
    assert "the machine is not steady" in said


def test_k_0_is_first_and_last_and_the_others_are_shuffled_by_the_seed():
    from launcher.speculation.setting import Cell, Setting

    settings = [Setting("ngram", k) for k in (1, 2, 3, 4, 6, 8)]
    cells = {each: [Cell(1, 0.0), Cell(4, 0.0)] for each in settings}
    found = sweep(1, settings, cells, seed=1)
    names = [each.setting.name for each in found]
    assert (names[0], names[-1]) == ("off", "off")
    assert sorted(names[1:-1]) == sorted(each.name for each in settings)
    assert found == sweep(1, settings, cells, seed=1)
    assert names != [each.setting.name for each in sweep(1, settings, cells, seed=2)]


async def test_evidence_survives_its_file(tmp_path):
    found, _ = await tuned(tmp_path, Served())
    text = json.dumps(to_data(found, {"seed": 0}), allow_nan=False)
    read = from_data(json.loads(text))
    assert plain(to_data(read, {})) == plain(to_data(found, {}))
    assert read.schedule == found.schedule
