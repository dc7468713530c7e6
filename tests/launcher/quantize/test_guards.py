"""What the quantizer does not check by itself."""

import pytest

from launcher.quantize.guards import after, expected_size
from launcher.quantize.scheme import Scheme

PLANNED = ["a.q_proj", "a.k_proj"]
SOUND = {
    "quantized": PLANNED,
    "strange": [],
    "bytes": 1000,
    "fallbacks": 0,
    "fallbacks_of": 2,
    "idle_experts": {},
}


def failed(experts=(), **changes):
    """Names and texts of the guards that refuse it."""
    found = after(SOUND | changes, PLANNED, experts=experts, expected=1000)
    return {each.name: each.text for each in found if not each.is_ok}


def test_a_sound_checkpoint_passes_all():
    assert failed() == {}


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"quantized": ["a.q_proj"]}, "quantized as planned", "1 layers that should be quantized are not (a.k_proj)"),
        ({"quantized": [*PLANNED, "lm_head"]}, "quantized as planned", "should not be (lm_head)"),
        ({"strange": ["a.weight_scale is NaN or infinite"]}, "sound numbers", "a.weight_scale is NaN"),
        ({"fallbacks": 1}, "calibrated, not only rounded", "1 of 2 layers were rounded to nearest"),
        ({"bytes": 1900}, "size", "still in 16 bits"),
        ({"idle_experts": {"3": [1, 2]}}, "experts", "layer 3: 1, 2"),
    ],
)
def test_each_guard_refuses_what_it_is_for(changes, name, said):
    (text,) = failed(**changes).values()
    assert said in text
    assert [*failed(**changes)] == [name]


def test_a_few_layers_may_fall_back():
    assert failed(fallbacks=5, fallbacks_of=100) == {}


def test_of_experts_that_are_stored_as_one_something_must_be_quantized():
    assert failed(experts=["a.mlp.experts."]) == {
        "quantized as planned": "1 layers that should be quantized are not (a.mlp.experts.): the quantizer does not "
        "know them"
    }
    assert failed(experts=["a.mlp.experts."], quantized=[*PLANNED, "a.mlp.experts.0.up_proj"]) == {}


def test_a_quarter_of_the_linear_weights_is_left_at_four_bits():
    assert expected_size(100, 80, Scheme.INT4) == 40
    assert expected_size(100, 80, Scheme.INT8) == 60
