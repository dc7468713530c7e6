"""What both models are asked, from what was prepared."""

import pytest

from launcher.errors import QuantizeError
from launcher.quantize.gate.records import Item, Record, Task, records_of, task_of


def test_records_and_tasks_are_read():
    assert records_of([{"ids": [1, 2, 3], "scored": [[1, 3]]}]) == (Record([1, 2, 3], [(1, 3)]),)
    choice = {"kind": "choice", "items": [{"ids": [1], "choices": [[2], [3]], "answer": 1}]}
    assert task_of(choice) == Task("choice", [Item([1], 1, [[2], [3]])])
    assert task_of({"kind": "exact", "items": [{"ids": [1], "answer": "x"}]}) == Task("exact", [Item([1], "x")])
    assert task_of(None) is None


@pytest.mark.parametrize("record", [{}, {"ids": [1]}, {"ids": [1], "scored": [3]}, None])
def test_a_record_that_is_none_is_refused(record):
    with pytest.raises(QuantizeError, match="held-out records cannot be read"):
        records_of([record])


@pytest.mark.parametrize(
    "task",
    [
        {"kind": "essay", "items": [{"ids": [1], "answer": "x"}]},
        {"kind": "exact", "items": [{"ids": [1], "answer": " "}]},
        {"kind": "exact", "items": [{"ids": [1], "answer": 1}]},
        {"kind": "choice", "items": [{"ids": [1], "choices": [[2]], "answer": 0}]},
        {"kind": "choice", "items": [{"ids": [1], "choices": [[2], []], "answer": 0}]},
        {"kind": "choice", "items": [{"ids": [1], "choices": [[2], [3]], "answer": 2}]},
        {"kind": "choice", "items": [{"ids": [1], "choices": [[2], [3]], "answer": True}]},
    ],
)
def test_an_item_that_does_not_fit_its_kind_is_named(task):
    with pytest.raises(QuantizeError, match="item 0 of the labelled task"):
        task_of(task)


@pytest.mark.parametrize("task", [{}, {"items": []}, {"kind": "exact", "items": [{}]}, []])
def test_a_task_that_is_none_is_refused(task):
    with pytest.raises(QuantizeError, match="labelled task cannot be read"):
        task_of(task)
