"""What cannot be calibrated with is refused with the reason; what is doubtful is told with what to do."""

import re

import pytest

from launcher.quantize.calibration import LEAST_TOKENS, refusals, summary, warnings

FACTS = {
    "read": 9000,
    "unreadable": 0,
    "faults": [],
    "empty": 0,
    "duplicates": 0,
    "near_duplicates": 0,
    "like_held_out": 0,
    "refused_by_template": 0,
    "secrets": {},
    "used": 512,
    "held_out": 64,
    "unanswered": 0,
    "plain": 0,
    "tokens": 150_000,
    "lengths": {"p50": 240, "p90": 800, "p99": 1900, "max": 2048},
    "max_tokens": 2048,
    "truncated": 3,
    "chat_template": True,
    "task_items_too_long": 0,
}


def test_usual_records_are_neither_refused_nor_warned_about():
    assert refusals(FACTS, needs_data=True) == ()
    assert warnings(FACTS, needs_data=True) == ()
    assert summary(FACTS) == (
        "512 records with 150,000 tokens to calibrate with, 64 held out for the gate, of 9,000 read; half of them have "
        "at most 240 tokens, 99 % at most 1,900"
    )


def test_too_few_records_and_tokens_are_refused_with_the_reason_and_the_fix():
    records, tokens = refusals({**FACTS, "used": 63, "tokens": LEAST_TOKENS - 1}, needs_data=True)
    assert re.match(r"calibration: 63 records are left of 9000 read, at least 64 are needed: .*collect more", records)
    assert re.match(r"calibration: 32,767 tokens, at least 32,768 are needed: .*GPTQ estimates.*--force", tokens)


def test_a_scheme_without_calibration_needs_none_of_it_but_what_is_held_out():
    few = {**FACTS, "used": 20, "tokens": 900, "held_out": 10, "truncated": 0}
    assert refusals(few, needs_data=False) == ()
    assert warnings(few, needs_data=False) == (
        "Only 10 records are held out for the gate, with fewer than 32 it concludes nothing: give more records.",
    )


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"used": 511}, "511 records are few, 512 are usual"),
        ({"secrets": {"API key": 2, "e-mail address": 31}}, r"\(API key in 2, e-mail address in 31\).*Remove them"),
        ({"unreadable": 2, "faults": [{"line": 7, "why": "not JSON"}]}, "2 of 9000 lines .* line 7: not JSON."),
        ({"duplicates": 1200}, "1,200 of 9,000 records repeat another word for word: each counts once"),
        ({"near_duplicates": 40, "like_held_out": 9}, "40 records are nearly the same .* 9 of them"),
        ({"refused_by_template": 5}, "5 records were left out: the model's chat template"),
        ({"chat_template": False}, "no chat template: messages were written as plain text"),
        ({"plain": 576}, "576 records are plain text although the model chats"),
        ({"unanswered": 64}, "64 of the held-out records have no answer"),
        ({"truncated": 30}, "30 of 576 records were longer than the 2,048 tokens"),
        ({"task_items_too_long": 1}, "1 items of the task are longer than 2,048 tokens"),
    ],
)
def test_what_is_doubtful_is_told(facts: dict[str, object], told: str):
    [warning] = warnings({**FACTS, **facts}, needs_data=True)
    assert re.search(told, warning)
