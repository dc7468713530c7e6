"""What vLLM's log-probabilities of a prompt say."""

import math

import pytest

from launcher.quantize.gate.reading import UnusableError, mean_logprob, record_scores
from launcher.quantize.gate.records import Record
from launcher.quantize.gate.scores import WIDTH

RECORD = Record([5, 6, 7], [(0, 3)])


def place(token: int, logprob: float | None = -1.0, rank: int = 1, width: int = WIDTH) -> dict:
    others = {str(1000 + r): {"logprob": -float(r), "rank": r} for r in range(1, width + 1) if r != rank}
    return {str(token): {"logprob": logprob, "rank": rank}, **others}


def test_the_first_token_has_no_score():
    made = record_scores(RECORD, [None, place(6), place(7, -3.0, 3)])
    assert made.actual.tolist() == [6, 7]
    assert made.logprobs.tolist() == [-1.0, -3.0]
    assert made.top[WIDTH] == 1001


def test_only_what_is_asked_for_is_scored():
    made = record_scores(Record([5, 6, 7, 8], [(1, 2), (3, 9)]), [None, place(6), None, place(8)])
    assert made.actual.tolist() == [6, 8]


def test_a_token_beyond_the_most_likely_is_not_among_them():
    made = record_scores(Record([5, 6], [(1, 2)]), [None, place(6, -9.5, 300)])
    assert made.logprobs.tolist() == [-9.5]
    assert len(made.top) == WIDTH


def test_equally_likely_ones_stand_in_the_order_of_their_numbers():
    told = {str(token): {"logprob": -3.0, "rank": 1} for token in (9, 8, 6, *range(100, 100 + WIDTH))}
    assert record_scores(Record([5, 6], [(1, 2)]), [None, told]).top[:3].tolist() == [6, 8, 9]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "x"])
def test_a_probability_that_is_no_number_is_unusable(value):
    with pytest.raises(UnusableError, match=f"token 2 has the log-probability {value}"):
        record_scores(RECORD, [None, place(6), place(7, value)])


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "token 1 has no log-probabilities"),
        ([None], "token 1 has no log-probabilities"),
        ([None, place(6), None], "token 2 has no log-probabilities"),
        ([None, place(6, width=5), place(7)], "token 1 has 5 log-probabilities, not 20"),
        ([None, place(8), place(7)], "token 1 has the log-probability None"),
        (
            [None, place(6), {str(n): {"logprob": -9999.0, "rank": 1} for n in range(20)}],
            "token 2 has a log-probability of minus infinity",
        ),
    ],
)
def test_what_is_missing_is_named(told, said):
    with pytest.raises(UnusableError, match=said):
        record_scores(RECORD, told)


def test_an_answer_is_as_likely_as_its_tokens_on_average():
    assert mean_logprob([5, 6, 7], 1, [None, place(6, -1.0), place(7, -4.0)]) == -2.5
