"""Scores survive being kept in a file."""

import json
from dataclasses import replace

import pytest

from launcher.quantize.gate.scores import TaskScores, damaged, dump, parse
from tests.launcher.quantize.gate.scored import scores

TASK = TaskScores("exact", (True, False), 0.0, ("item 1 of the task: the engine answered 500",))


@pytest.mark.parametrize("task", [None, TASK])
def test_scores_are_the_same_after_being_kept(task):
    made = scores(3, 5, noise=0.3, task=task)
    made = replace(made, records=(*made.records, damaged("record 3: token 7 has the log-probability nan")))
    assert parse(dump(made)) == made


def test_all_damage_is_told():
    made = replace(scores(1, 2, task=TASK), records=(damaged("record 0: broken"),))
    assert made.damage == ("record 0: broken", "item 1 of the task: the engine answered 500")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"records": [{}], "task": null}', '{"records": [], "task": {}}'])
def test_a_file_with_something_else_is_refused(text):
    with pytest.raises(ValueError, match=r"no scores of the gate|Expecting value"):
        parse(text)


def test_kept_scores_are_plain_json():
    assert json.loads(dump(scores(1, 2)))["records"][0]["damage"] is None
