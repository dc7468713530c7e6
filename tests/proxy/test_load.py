"""What is known of an instance: prompts it has seen, work it has, and its rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.hint import Hint
from proxy.load import UNMEASURED_RATE, Load
from proxy.prefixes import Prefixes

prompts = st.lists(st.integers(0, 3), max_size=12).map(lambda turns: chained(*turns))


def chained(*turns: int) -> tuple[int, ...]:
    """Block hashes of a prompt, each one depending on those before."""
    return tuple(hash(turns[: i + 1]) for i in range(len(turns)))


@given(st.lists(prompts, max_size=20), prompts, st.integers(1, 30))
def test_the_memory_is_bounded_and_finds_the_longest_beginning(seen, asked, limit):
    prefixes, exact = Prefixes(), set()
    for prompt in seen:
        prefixes.add(prompt, limit)
        exact |= set(prompt)
    assert len(prefixes) <= limit
    found = prefixes.match(asked)
    assert asked[:found] == () or asked[found - 1] in exact
    if len(exact) <= limit:
        assert found == next((i for i, block in enumerate(asked) if block not in exact), len(asked))


@given(st.lists(prompts, min_size=1, max_size=20), st.integers(1, 30))
def test_what_is_remembered_of_a_prompt_has_no_gaps(seen, limit):
    prefixes = Prefixes()
    for prompt in seen:
        prefixes.add(prompt, limit)
    for prompt in seen:
        known = [prefixes.match((block,)) == 1 for block in prompt]
        assert known == sorted(known, reverse=True)


def test_what_was_used_least_lately_is_forgotten_first():
    prefixes = Prefixes()
    for prompt in ("ab", "cd", "ab", "ef"):
        prefixes.add(tuple(map(ord, prompt)), 4)
    assert [prefixes.match(tuple(map(ord, prompt))) for prompt in ("ab", "cd", "ef")] == [2, 0, 2]


def test_an_instance_that_was_started_anew_has_nothing_cached():
    load = Load()
    hint = Hint(tokens=200, blocks=(1, 2, 3))
    load.prefixes.add(hint.blocks, 10)
    assert load.uncached(hint) == 200 - 3 * 64
    load.forget()
    assert load.uncached(hint) == 200


def leg(load: Load, uncached: int, started: float, ended: float, *, done: bool = True) -> None:
    load.end(load.begin(uncached), started, ended, done=done)


def test_an_instance_without_a_measurement_is_trusted():
    assert Load().rate(now=0) == UNMEASURED_RATE


def test_the_first_leg_replaces_the_trust():
    load = Load()
    leg(load, 1936, 0, 2)
    assert load.rate(now=2) == 1000


def test_legs_that_wait_for_each_other_do_not_seem_slower():
    load = Load()
    works = [load.begin(936) for _ in range(4)]
    for number, work in enumerate(works):
        load.end(work, 0.0, number + 1.0, done=True)
    assert load.rate(now=4) == pytest.approx(1000)


def test_legs_that_end_together_were_computed_together():
    load = Load()
    works = [load.begin(936) for _ in range(50)]
    for work in works:
        load.end(work, 0.0, 5.0, done=True)
    assert load.rate(now=5) == pytest.approx(10_000)


def test_the_rate_follows_the_instance():
    load = Load()
    leg(load, 936, 0, 10)
    for second in range(10, 40):
        leg(load, 936, second, second + 1)
    assert load.rate(now=40) == pytest.approx(1000, rel=0.02)


def test_a_leg_that_failed_tells_nothing_of_the_rate():
    load = Load()
    leg(load, 1936, 0, 2)
    leg(load, 1936, 2, 12, done=False)
    assert load.rate(now=12) == 1000
    assert load.outstanding == 0


def test_a_slow_start_is_forgiven_after_half_a_minute_of_rest():
    load = Load()
    leg(load, 36, 0, 10)
    assert load.rate(now=39) == 10
    assert load.rate(now=41) == UNMEASURED_RATE
    work = load.begin(1936)
    assert load.rate(now=41) == 10  # busy again: no rest
    load.end(work, 41, 43, done=True)
    assert load.rate(now=43) == 1000


def test_the_queue_is_what_the_running_legs_have_to_compute():
    load = Load()
    leg(load, 936, 0, 1)
    load.begin(436)
    assert load.seconds(now=1) == pytest.approx(0.5)
    assert load.seconds(now=1, more=1000) == pytest.approx(1.5)


def test_a_cached_prompt_is_not_free():
    load = Load()
    load.begin(0)
    assert load.seconds(now=0) > 0
