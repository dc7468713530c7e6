"""What may be answered, and what is said of an answer that cannot be."""

import pytest

from launcher.advice.facts import FACTS, AnswerError, parse_answer
from launcher.advice.situation import Fact, Origin, Situation


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("concurrency=40", ("concurrency", 40.0)),
        (" temperature = 0.7 ", ("temperature", 0.7)),
        ("monitoring=no", ("monitoring", False)),
        ("predictable=TRUE", ("predictable", True)),
        ("quantized=INT8", ("quantized", "int8")),
        ("prefix_hit_rate=1", ("prefix_hit_rate", 1.0)),
    ],
)
def test_an_answer_is_understood(text, answer):
    assert parse_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("concurrency", "'concurrency' is no answer, write NAME=VALUE"),
        ("concurrency=many", "concurrency: 'many' is not possible, give a number (0 or more requests)"),
        ("concurrency=-1", "concurrency: '-1' is not possible, give a number (0 or more requests)"),
        ("concurrency=inf", "concurrency: 'inf' is not possible, give a number (0 or more requests)"),
        ("concurrency=nan", "concurrency: 'nan' is not possible, give a number (0 or more requests)"),
        ("devices=0", "devices: '0' is not possible, give a number (1 to 100000 devices)"),
        ("prefix_hit_rate=70", "prefix_hit_rate: '70' is not possible, give a share (0 to 1)"),
        ("monitoring=perhaps", "monitoring: 'perhaps' is not possible, give yes or no"),
        ("quantized=int2", "quantized: int2 is not possible, give none, int8, int4, fp8, other"),
        ("concurency=4", "no fact 'concurency'; did you mean concurrency?"),
        ("itl_spread=1", "itl_spread is computed from itl_p99, itl_p50: answer those"),
    ],
)
def test_an_impossible_answer_names_the_fact_the_value_and_what_is_allowed(text, message):
    with pytest.raises(AnswerError) as raised:
        parse_answer(text)
    assert str(raised.value) == message


def test_a_name_like_no_other_gets_the_whole_list():
    with pytest.raises(AnswerError, match="there are: memory_short, ttft_slow, "):
        parse_answer("xyzzy=1")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("ttft_p95", 0.0123, "12.3 ms"),
        ("ttft_p95", 2.5, "2.5 s"),
        ("prefix_hit_rate", 0.625, "62.5 %"),
        ("devices", 1.0, "1 device"),
        ("prompt_tokens_p95", 12_345.0, "12,345 tokens"),
        ("concurrency", 3.25, "3.25 requests"),
        ("compute_capability", 8.9, "8.9"),
        ("monitoring", True, "yes"),
        ("quantized", "fp8", "fp8"),
    ],
)
def test_values_are_shown_with_their_units(name, value, shown):
    assert FACTS[name].show(value) == shown


def test_what_is_known_first_stays():
    situation = Situation().plus({"concurrency": 4.0}, Origin.ANSWERED)
    situation = situation.plus({"concurrency": 9.0, "batch": None, "devices": 2.0}, Origin.MEASURED)
    assert situation.facts == {
        "concurrency": Fact(4.0, Origin.ANSWERED),
        "devices": Fact(2.0, Origin.MEASURED),
    }


def test_a_fact_that_is_none_is_a_mistake():
    with pytest.raises(KeyError):
        Situation().value("concurency")
    with pytest.raises(KeyError):
        Situation().plus({"concurency": 4.0}, Origin.ANSWERED)
