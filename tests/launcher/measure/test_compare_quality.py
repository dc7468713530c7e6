"""Whether answers became worse is judged by known answers, else by how often greedy texts are equal."""

from launcher.measure.compare_quality import agreement, right
from launcher.measure.compare_shape import Block, Side, Verdict
from launcher.measure.request import Request
from launcher.measure.sample import Sample


def texts(*said):
    return tuple(Sample(number, 0.0, 0.0, 0.1, 1.0, 5, 5, 5, 0.1, text=text) for number, text in enumerate(said))


def block(side, *said, pair=0, probes=()):
    return Block(side, pair, texts(*said), 1.0, texts(*probes))


def asked(*answers):
    return {0: [Request("completions", {"prompt": "?"}, answer=answer) for answer in answers]}


def test_answers_that_only_one_side_has_right_decide():
    blocks = [block(Side.A, *["It is Paris."] * 60), block(Side.B, *["It is Rome."] * 60)]
    found = right(blocks, asked("paris"))
    assert found is not None
    assert (found.kind, found.items, found.a, found.b) == ("answers", 60, 1.0, 0.0)
    assert found.verdict is Verdict.WORSE


def test_few_equal_answers_are_not_enough_data_and_many_show_no_difference():
    few = right([block(Side.A, *["Paris"] * 10), block(Side.B, *["Paris"] * 10)], asked("Paris"))
    many = right([block(Side.A, *["Paris"] * 600), block(Side.B, *["Paris"] * 600)], asked("Paris"))
    assert few is not None
    assert few.verdict is Verdict.UNKNOWN
    assert many is not None
    assert many.verdict is Verdict.SAME


def test_a_workload_without_answers_is_not_judged_by_them():
    assert right([block(Side.A, "x"), block(Side.B, "x")], asked(None)) is None


def test_b_may_differ_from_a_as_often_as_a_differs_from_itself():
    one, other = ["x"] * 90 + ["y"] * 10, ["x"] * 80 + ["z"] * 10 + ["y"] * 10
    blocks = [block(Side.A, probes=one), block(Side.A, probes=other), block(Side.B, probes=other)]
    found = agreement(blocks)
    assert found is not None
    assert (found.a, found.b) == (0.9, 0.9)
    assert found.verdict is not Verdict.WORSE


def test_texts_that_differ_far_more_often_than_a_from_itself_are_worse():
    blocks = [block(Side.A, probes=["x"] * 40), block(Side.A, probes=["x"] * 40), block(Side.B, probes=["y"] * 40)]
    found = agreement(blocks)
    assert found is not None
    assert found.verdict is Verdict.WORSE


def test_without_a_second_run_of_a_agreement_says_nothing():
    assert agreement([block(Side.A, probes=["x"]), block(Side.B, probes=["x"])]) is None
