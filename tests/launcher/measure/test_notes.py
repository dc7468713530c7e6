"""A measurement says itself what speaks against relying on it."""

import pytest

from launcher.measure.bench_shape import Settings, Usage
from launcher.measure.counted import Counted
from launcher.measure.figures import figures
from launcher.measure.figures_shape import Objectives, Span
from launcher.measure.load import Arrivals, Closed, Load, Open
from launcher.measure.notes import notes
from launcher.measure.sample import Sample
from tests.launcher.measure.requests import sample

NOTHING = Counted(10, None, None, None, None, None, None, (), {})
CLOSED = Closed(2)


def steady(count: int = 100, **values) -> list[Sample]:
    return [sample(number, sent=0.2 * number, total=0.2, **values) for number in range(count)]


def said(
    samples: list[Sample],
    load: Load = CLOSED,
    usage: Usage = Usage(0.1, 0.0),  # noqa: B008  # frozen
    counted: Counted = NOTHING,
    *,
    has_prefill: bool = False,
) -> str:
    made = figures(samples, Span(0, 20), Objectives())
    return "\n".join(notes(made, samples, counted, usage, Settings(load), has_prefill=has_prefill))


def test_a_good_measurement_has_nothing_to_say():
    assert said(steady(path="pd"), has_prefill=True) == ""


def test_failures_come_first_with_an_example():
    failed = [sample(100 + i, sent=0.5 + i, error="HTTP 503: busy", ttft=None, tokens=0) for i in range(3)]
    told = said(steady() + failed, usage=Usage(0.9, None))
    assert told.startswith("3 of 103 requests failed, and are in no latency: 3 x HTTP 503: busy\n")


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(0.75, None), "this client used 75% of one core"),
        (Usage(0.1, 0.4), "something else used 40% of this machine's processors"),
    ],
)
def test_a_busy_client_or_machine_is_said(usage: Usage, text: str):
    assert text in said(steady(), usage=usage)


def test_requests_that_were_sent_late_are_said():
    late = [sample(number, sent=0.2 * number + 0.1, due=0.2 * number, total=0.1, ttft=0.05) for number in range(90)]
    told = said(late, Open(Arrivals.POISSON, 5, most=7))
    assert "90 of 90 requests were sent late, by up to 100 ms" in told
    assert "7 requests were under way" in told
    assert "late" not in said(late)


def test_answers_without_prefill_are_said_where_there_is_one():
    some = steady(80, path="pd") + [
        sample(80 + i, sent=16 + i / 10, path="aggregated", bypass="short") for i in range(20)
    ]
    assert "only 80% of the answers came by prefill and decode (short 20)" in said(some, has_prefill=True)
    assert "prefill" not in said(some)


def test_requests_that_came_again_are_said():
    again = [sample(number % 40, sent=0.2 * number, total=0.2) for number in range(100)]
    assert "each came up to 3 times" in said(again)


def test_a_time_that_is_too_short_is_said():
    assert "measure longer" in said([sample(number, sent=5.0 * number, total=5.0, ttft=1.0) for number in range(4)])


def test_what_engines_could_not_tell_is_said():
    counted = Counted(10, None, None, None, None, None, None, (), {}, ("decode-0 told nothing",))
    assert said(steady(), counted=counted) == "decode-0 told nothing"
