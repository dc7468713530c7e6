"""Which precision for which hardware?"""

import pytest

from launcher.errors import QuantizeError
from launcher.quantize.before import target_of
from launcher.quantize.scheme import Scheme, choose

CPU = target_of("cpu", ())


def of(gpu):
    return target_of(gpu, ())


@pytest.mark.parametrize(
    ("target", "scheme"),
    [
        ("cpu", Scheme.INT8),
        ("NVIDIA T4", Scheme.INT8),
        ("NVIDIA A100-SXM4-80GB", Scheme.INT8),
        ("NVIDIA L40S", Scheme.FP8),
        ("NVIDIA H100 80GB HBM3", Scheme.FP8),
        ("NVIDIA B200", Scheme.FP8),
        ("Tesla V100-SXM2-32GB", Scheme.INT4),
    ],
)
def test_the_scheme_follows_the_hardware_and_says_why(target, scheme):
    choice = choose(None, of(target), parameters=10**9, is_mixture=False)
    assert choice.scheme is scheme
    assert choice.why.startswith(scheme.value.upper())


@pytest.mark.parametrize(
    ("scheme", "target", "is_mixture", "said"),
    [
        (Scheme.INT8, "NVIDIA B200", False, "Blackwell .* --scheme fp8"),
        (Scheme.INT8, "Tesla V100", False, "Turing"),
        (Scheme.INT8, "cpu", True, "mixtures of experts on a CPU: use --scheme int4"),
    ],
)
def test_what_the_engine_cannot_serve_there_is_refused(scheme, target, is_mixture, said):
    with pytest.raises(QuantizeError, match=said):
        choose(scheme, of(target), parameters=10**9, is_mixture=is_mixture)


@pytest.mark.parametrize(
    ("scheme", "target", "parameters", "said"),
    [
        (Scheme.FP8, "cpu", 10**9, "3 to 10 times"),
        (Scheme.FP8, "NVIDIA A100", 10**9, "only memory is saved"),
        (Scheme.INT4, "NVIDIA H100", 13 * 10**9, "mathematics and code"),
    ],
)
def test_what_costs_more_than_it_seems_is_told(scheme, target, parameters, said):
    (warning,) = choose(scheme, of(target), parameters=parameters, is_mixture=False).warnings
    assert said in warning


def test_a_small_model_at_four_bits_is_no_cause_for_a_warning():
    assert choose(Scheme.INT4, of("NVIDIA H100"), parameters=8 * 10**9, is_mixture=False).warnings == ()


def test_a_gpu_that_nobody_knows_is_refused_as_a_target():
    with pytest.raises(QuantizeError, match="--target 'H9000' is not known"):
        of("H9000")


@pytest.mark.parametrize(("name", "has"), [("cpu", True), ("NVIDIA H100", True), ("B200", False), ("V100", False)])
def test_eight_bit_integers_are_there_from_turing_to_hopper(name, has):
    assert of(name).has_int8 is has
