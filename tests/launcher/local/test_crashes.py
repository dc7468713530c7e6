"""When an instance that ends by itself is started again."""

from launcher.local.crashes import CALM, Crashes


def test_pauses_double_and_the_third_crash_without_calm_is_a_loop():
    crashes = Crashes()
    assert [crashes.pause(served) for served in (CALM * 9, 0.0, CALM - 1)] == [1.0, 2.0, None]


def test_after_some_service_it_begins_anew():
    crashes = Crashes()
    assert [crashes.pause(served) for served in (0.0, 1.0, CALM, 0.0, CALM)] == [1.0, 2.0, 1.0, 2.0, 1.0]


def test_somebody_who_has_looked_into_it_gives_it_a_new_chance():
    crashes = Crashes()
    crashes.pause(0.0)
    crashes.pause(0.0)
    crashes.forget()
    assert crashes.pause(0.0) == 1.0
