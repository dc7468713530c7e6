"""Which instance is next."""

from collections import Counter
from contextlib import ExitStack
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.config import ProxyConfig
from proxy.hint import NO_HINT, Hint
from proxy.pool import Member, Pool
from proxy.selection import (
    least_in_flight,
    power_of_two,
    prefix_affinity,
    round_robin,
    session_affinity,
    ttft,
    within_bounds,
)
from proxy.topology import Instance, Role, Topology

LIMIT = 1000
PROMPT = Hint(tokens=640, blocks=tuple(range(10)))
POLICIES = {
    "least_in_flight": least_in_flight,
    "round_robin": round_robin,
    "power_of_two": power_of_two(Random(1)),
    "session_affinity": session_affinity,
    "prefix_affinity": prefix_affinity,
    "ttft": ttft(0.2, lambda: 0.0),
}


def pool_of(count: int) -> Pool:
    pool = Pool(
        ProxyConfig(
            Topology(tuple(Instance(f"decode-{i}", Role.DECODE, f"http://127.0.0.1:{i}") for i in range(count)))
        )
    )
    for member in pool.members:
        member.healthy = True
    return pool


def members_of(in_flight: list[int]) -> list[Member]:
    members = list(pool_of(len(in_flight)).members)
    for member, number in zip(members, in_flight, strict=True):
        member.in_flight = number
    return members


def take(pool: Pool, policy=least_in_flight, hint: Hint = NO_HINT) -> str:
    member = policy(pool.usable(Role.DECODE), hint)
    with pool.using(member):
        member.load.prefixes.add(hint.blocks, LIMIT)
        return member.instance.name


loads = st.lists(st.integers(0, 50), min_size=1, max_size=8)
hints = st.builds(
    Hint,
    tokens=st.integers(0, 10_000),
    blocks=st.lists(st.integers(), unique=True, max_size=30).map(tuple),
    session=st.none() | st.text(),
)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(in_flight=loads, hint=hints, known=st.lists(st.integers(0, 30), min_size=8, max_size=8))
def test_the_choice_is_one_of_the_candidates(policy, in_flight, hint, known):
    members = members_of(in_flight)
    for member, blocks in zip(members, known, strict=False):
        member.load.prefixes.add(hint.blocks[:blocks], LIMIT)
    chosen = policy(members, hint)
    assert any(chosen is member for member in members)


@given(in_flight=loads, session=st.text())
def test_affinity_respects_the_bound_on_load(in_flight, session):
    members = members_of(in_flight)
    members[0].load.prefixes.add(PROMPT.blocks, LIMIT)
    bound = 1.25 * min(in_flight) + 2
    assert all(member.in_flight <= bound for member in within_bounds(members))
    assert session_affinity(members, Hint(session=session)).in_flight <= bound
    assert prefix_affinity(members, PROMPT).in_flight <= bound


def test_equals_take_turns():
    pool = pool_of(3)
    assert [take(pool) for _ in range(4)] == ["decode-0", "decode-1", "decode-2", "decode-0"]


def test_the_one_with_fewer_requests_in_flight_is_next():
    pool = pool_of(2)
    with pool.using(pool.members[0]):
        assert [take(pool), take(pool)] == ["decode-1", "decode-1"]


def test_an_instance_that_is_not_healthy_is_no_candidate():
    pool = pool_of(2)
    pool.members[0].healthy = False
    assert [take(pool), take(pool)] == ["decode-1", "decode-1"]


def test_round_robin_does_not_look_at_the_load():
    pool = pool_of(2)
    with pool.using(pool.members[0]):
        assert [take(pool, round_robin) for _ in range(4)] == ["decode-1", "decode-0", "decode-1", "decode-0"]


def test_power_of_two_never_takes_the_busiest_of_three():
    members = members_of([1, 9, 2])
    policy = power_of_two(Random(7))
    chosen = Counter(policy(members, NO_HINT).in_flight for _ in range(300))
    assert set(chosen) == {1, 2}


def test_power_of_two_spreads_over_equals():
    policy = power_of_two(Random(7))
    chosen = Counter(policy(members_of([0] * 4), NO_HINT).instance.name for _ in range(400))
    assert len(chosen) == 4


def test_a_session_stays():
    pool = pool_of(5)
    assert len({take(pool, session_affinity, Hint(session="mine")) for _ in range(20)}) == 1


def test_requests_without_a_session_go_to_the_least_busy():
    pool = pool_of(3)
    assert [take(pool, session_affinity) for _ in range(3)] == ["decode-0", "decode-1", "decode-2"]


def test_sessions_spread_evenly():
    pool = pool_of(4)
    counts = Counter(take(pool, session_affinity, Hint(session=str(i))) for i in range(4000))
    assert all(850 < count < 1150 for count in counts.values())


@settings(max_examples=20)
@given(count=st.integers(2, 8), gone=st.integers(0, 7), salt=st.text(max_size=5))
def test_only_the_sessions_of_an_instance_that_leaves_move(count, gone, salt):
    members = members_of([0] * count)
    left = members[gone % count]
    rest = [member for member in members if member is not left]
    moved = 0
    for i in range(300):
        hint = Hint(session=f"{salt}{i}")
        before, after = session_affinity(members, hint), session_affinity(rest, hint)
        assert before is after or before is left
        moved += before is not after
    assert moved / 300 < 1 / count + 0.12


def test_a_session_gives_way_when_its_instance_is_far_busier_and_returns_when_it_is_not():
    members = members_of([0, 0, 0])
    hint = Hint(session="mine")
    home = session_affinity(members, hint)
    home.in_flight = 3
    assert session_affinity(members, hint) is not home
    home.in_flight = 2
    assert session_affinity(members, hint) is home


def test_a_repeated_prompt_meets_its_cache():
    pool = pool_of(3)
    assert len({take(pool, prefix_affinity, PROMPT) for _ in range(5)}) == 1


def test_new_prompts_go_to_the_least_busy():
    pool = pool_of(3)
    new = [Hint(tokens=64, blocks=(i,)) for i in range(3)]
    assert [take(pool, prefix_affinity, hint) for hint in new] == ["decode-0", "decode-1", "decode-2"]


def test_the_longest_match_wins():
    members = members_of([0, 1, 0])
    members[0].load.prefixes.add(PROMPT.blocks[:6], LIMIT)
    members[1].load.prefixes.add(PROMPT.blocks[:9], LIMIT)
    assert prefix_affinity(members, PROMPT) is members[1]


def test_of_equal_matches_the_least_busy_wins():
    members = members_of([2, 1, 0])
    for member in members[:2]:
        member.load.prefixes.add(PROMPT.blocks, LIMIT)
    assert prefix_affinity(members, PROMPT) is members[1]


def test_a_match_of_less_than_half_the_prompt_does_not_count():
    members = members_of([1, 0])
    members[0].load.prefixes.add(PROMPT.blocks[:4], LIMIT)
    assert prefix_affinity(members, PROMPT) is members[1]


def test_a_hot_prefix_spills_over_to_others():
    pool = pool_of(3)
    with ExitStack() as running:
        for _ in range(12):
            member = prefix_affinity(pool.members, PROMPT)
            member.load.prefixes.add(PROMPT.blocks, LIMIT)
            running.enter_context(pool.using(member))
        assert sorted(member.in_flight for member in pool.members) == [4, 4, 4]


def busy(member: Member, tokens: int, rate: float = 1000.0) -> None:
    """The member has shown a rate and has so many tokens outstanding at 0 s."""
    work = member.load.begin(int(rate) - 64)
    member.load.end(work, -1.0, 0.0, done=True)
    if tokens:
        member.load.begin(tokens - 64)


@pytest.mark.parametrize(
    ("cached", "outstanding", "chosen"),
    [
        ((10, 0, 0), (0, 0, 0), 0),  # the most cached
        ((10, 0, 0), (100, 0, 0), 0),  # it waits, but not too long
        ((10, 9, 0), (300, 0, 0), 1),  # it waits too long: the next most cached
        ((10, 0, 0), (900, 900, 900), 0),  # none is in time: the first to answer
        ((10, 0, 0), (900, 100, 900), 1),
        ((0, 0, 0), (300, 200, 100), 2),
    ],
)
def test_ttft_weighs_cache_against_queue(cached, outstanding, chosen):
    members = members_of([0, 0, 0])
    for member, blocks, tokens in zip(members, cached, outstanding, strict=True):
        busy(member, tokens)
        member.load.prefixes.add(PROMPT.blocks[:blocks], LIMIT)
    assert ttft(0.2, lambda: 0.0)(members, PROMPT) is members[chosen]


def test_ttft_counts_tokens_and_not_requests():
    members = members_of([1, 3])
    busy(members[0], 20_000)
    busy(members[1], 300)
    assert ttft(0.2, lambda: 0.0)(members, Hint(tokens=100)) is members[1]


def test_ttft_prefers_the_faster_of_two_with_the_same_work():
    members = members_of([0, 0])
    busy(members[0], 500, rate=1000)
    busy(members[1], 500, rate=4000)
    assert ttft(0.2, lambda: 0.0)(members, Hint(tokens=500)) is members[1]
