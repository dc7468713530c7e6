"""When a generated text is the expected answer."""

import pytest

from launcher.quantize.gate.right import is_right, room_for


@pytest.mark.parametrize(
    ("generated", "expected"),
    [
        (" Paris", "Paris"),
        ("paris.", "Paris"),
        ("\n\n**Paris**\nIt is the capital.", "Paris"),
        ("New   York", "new york"),
        ("ﬁve", "five"),
        ("-12", "12"),
        ("one\ntwo\nthree", "one\ntwo"),
        ("...", "..."),
    ],
)
def test_the_same_apart_from_its_looks(generated, expected):
    assert is_right(generated, expected)


@pytest.mark.parametrize(
    ("generated", "expected"),
    [("Paris, France", "Paris"), ("", "Paris"), ("one", "one\ntwo"), ("The answer is 12", "12"), ("1.2", "12")],
)
def test_another_answer(generated, expected):
    assert not is_right(generated, expected)


def test_there_is_room_for_every_answer_and_a_bit_more():
    assert room_for("naïve") == 6 + 8
