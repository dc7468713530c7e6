"""A schedule that gives less than its parts promise is corrected."""

from launcher.measure.interval import Interval
from launcher.speculation.confirmed import Confirmed, confirmed, corrected
from launcher.speculation.evidence import Choice
from launcher.speculation.setting import OFF, Setting, Visit
from tests.launcher.speculation.simulator import point

ONE = Interval(1.0, 1.0, 1.0)
GREEDY = {0.0: 1.0}
CHOSEN = (Choice(1, "ngram", 4, ONE, ONE, ""), Choice(8, "off", 0, ONE, ONE, ""))


def measured(k_alone_at_8):
    """Points: K 4 gives half as much again alone, and this share of K 0's goodput with 8."""
    return [
        *(point("off", 0, load, 100, 1) for load in (1, 8)),
        point("ngram", 4, 1, 150, 1),
        point("ngram", 4, 8, 100 * k_alone_at_8, 1),
    ]


def gave(at_1, at_8):
    return [Confirmed(load, Interval(value, value - 0.01, value + 0.01), ONE) for load, value in ((1, at_1), (8, at_8))]


def ks(choices):
    return None if choices is None else [each.k for each in choices]


def test_what_keeps_its_promise_stays():
    assert corrected(CHOSEN, gave(1.5, 0.98), measured(0.8), GREEDY) is None


def test_where_k_0_itself_is_slow_k_stays_as_at_the_load_below_if_that_is_no_slower():
    assert ks(corrected(CHOSEN, gave(1.5, 0.6), measured(0.99), GREEDY)) == [4, 4]


def test_where_neither_k_pays_nothing_is_drafted_at_any_load():
    found = corrected(CHOSEN, gave(1.5, 0.6), measured(0.8), GREEDY)
    assert ks(found) == [0, 0]
    assert found is not None
    assert "although K is 0 there" in found[0].reason


def test_a_k_that_falls_short_becomes_0_there():
    both = (CHOSEN[0], Choice(8, "ngram", 4, ONE, ONE, ""))
    assert ks(corrected(both, gave(1.5, 0.6), measured(1.2), GREEDY)) == [4, 0]


def test_each_load_is_compared_with_the_visits_of_the_same_load_and_confirmation():
    scheduled, fixed = Setting("ngram", 4, ((1, 1, 4), (2, 16, 0))), Setting("ngram", 4)
    values = {scheduled: (150, 98), OFF: (100, 100), fixed: (150, 80)}
    visits = [
        Visit("confirm 1", number, setting.name, point(setting.method, setting.k, load, value, 1))
        for number, (setting, both) in enumerate(values.items())
        for load, value in zip((1, 8), both, strict=True)
    ]
    alone, many = confirmed(visits, scheduled, fixed, GREEDY)
    assert (alone.of_off.value, alone.of_fixed.value) == (1.5, 1.0)
    assert (round(many.of_off.value, 3), round(many.of_fixed.value, 3)) == (0.98, 1.225)
