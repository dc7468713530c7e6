"""How much two models differ."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.errors import QuantizeError
from launcher.quantize.gate.compare import compare, kl
from launcher.quantize.gate.scores import Scores, damaged
from tests.launcher.quantize.gate.scored import VOCABULARY, record, scores


def logits(seed: int, rows: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, (rows, VOCABULARY))


def whole_kl(a: np.ndarray, b: np.ndarray) -> float:
    """Over the whole vocabulary."""
    p, q = (each - np.log(np.exp(each).sum(axis=1, keepdims=True)) for each in (a, b))
    return float((np.exp(p) * (p - q)).sum(axis=1).mean())


def test_a_model_does_not_differ_from_itself():
    same = scores(4, 20)
    for each in compare(same, same):
        assert (each.positions, each.kl, each.agreed, each.worse, each.better, each.nll) == (20, 0.0, 20, 0, 0, 0.0)


@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0, 3.0])
def test_the_estimate_from_the_most_likely_tokens_is_near_the_whole(noise):
    a = logits(1)
    b = a + noise * np.random.default_rng(2).normal(0, 1, a.shape)
    estimate = float(kl(record(a, [0] * 40), record(b, [0] * 40)).mean())
    assert whole_kl(a, b) * 0.7 <= estimate <= whole_kl(a, b) * 1.1


def test_models_with_no_likely_token_in_common_differ_a_lot():
    a = np.zeros((5, VOCABULARY))
    b = a.copy()
    a[:, :20], b[:, -20:] = 8, 8
    assert kl(record(a, [0] * 5), record(b, [0] * 5)).min() > 3


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 20))
def test_it_is_never_negative_nor_infinite(seed, noise):
    a = logits(seed, 3)
    b = a + noise * logits(seed + 1, 3)
    found = kl(record(a, [0] * 3), record(b, [0] * 3))
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_places_that_became_right_and_wrong_are_counted():
    a, b = np.zeros((4, VOCABULARY)), np.zeros((4, VOCABULARY))
    for row, (first, second) in enumerate([(1, 1), (1, 2), (2, 1), (3, 4)]):
        a[row, first], b[row, second] = 5, 5
    (found,) = compare(Scores((record(a, [1] * 4),)), Scores((record(b, [1] * 4),)))
    assert (found.agreed, found.worse, found.better) == (1, 1, 1)


def test_text_that_became_less_likely_has_more_nats():
    a, b = np.zeros((1, VOCABULARY)), np.zeros((1, VOCABULARY))
    a[0, 7] = 3
    (found,) = compare(Scores((record(a, [7]),)), Scores((record(b, [7]),)))
    assert found.nll > 2


def test_records_that_could_not_be_scored_are_left_out():
    made = scores(3, 5)
    broken = Scores((made.records[0], damaged("record 1: broken"), made.records[2]))
    assert len(compare(made, broken)) == len(compare(broken, made)) == 2


def test_fewer_records_are_compared_with_the_first_ones():
    assert len(compare(scores(5, 4), scores(2, 4))) == 2


def test_scores_of_other_records_are_not_compared():
    with pytest.raises(QuantizeError, match="record 0 was scored at other tokens"):
        compare(scores(1, 5), scores(1, 6))
