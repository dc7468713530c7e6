"""The controller decides by what is gained: simulated deployments, calibrated with published figures, many seeds."""

import math

import pytest

from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action
from tests.launcher.operate.simulated import World, tpot

POLICY = Policy(window=30, rest=120, retry=600, longest_retry=4800)
TUNED = Knowledge(tuned={batch: (math.log(tpot(batch, 0, 0)), 0.02) for batch in (1.0, 4.0, 8.0, 16.0, 32.0, 64.0)})
SEEDS = range(5)
HOUR = 120
"""Windows."""


def test_the_simulated_engine_has_the_published_speeds():
    assert 1 / tpot(1, 0, 0) == pytest.approx(33.8, rel=0.01)
    assert 32 / tpot(32, 0, 0) == pytest.approx(867.8, rel=0.02)
    assert 1 / tpot(1, 4, 0.88) == pytest.approx(56.4, rel=0.03)
    assert 32 / tpot(32, 4, 0.88) == pytest.approx(0.84 * 867.8, rel=0.03)


@pytest.mark.parametrize("known", [Knowledge(), TUNED], ids=["nothing is known", "tuned"])
def test_where_it_pays_it_stays_on(known: Knowledge):
    wrong = sum(Action.OFF in World(POLICY, seed=seed, known=known).run(4 * HOUR).actions() for seed in SEEDS)

    assert wrong == 0


def test_high_acceptance_does_not_save_speculation_that_costs_time():
    for seed in SEEDS:
        world = World(POLICY, seed=seed, known=TUNED, batch=lambda _: 32.0).run(20)
        assert world.actions()[0] is Action.OFF
        off = next(decision for _, decision in world.decisions if decision.action is Action.OFF)
        assert off.found.traffic.acceptance > 0.7
        assert off.found.gain.high < POLICY.margin


def test_low_acceptance_switches_it_off_where_no_gain_is_known():
    for seed in SEEDS:
        world = World(POLICY, seed=seed, acceptance=lambda _: 0.05).run(20)
        assert world.state.cap == 0


def test_low_acceptance_does_not_switch_off_what_is_shown_to_gain():
    for seed in SEEDS:
        world = World(POLICY, seed=seed, k=1, known=TUNED, acceptance=lambda _: 0.46, noise=0.03)
        world.run(2 * HOUR)
        assert Action.OFF not in world.actions()
        assert world.decisions[-1][1].found.traffic.acceptance < POLICY.break_even


@pytest.mark.parametrize("known", [Knowledge(), TUNED], ids=["nothing is known", "tuned"])
def test_it_is_off_while_the_workload_is_unfit_and_on_again_afterwards(known: Knowledge):
    unfit = (HOUR * 30.0, 3 * HOUR * 30.0)
    for seed in SEEDS:
        world = World(
            POLICY,
            seed=seed,
            known=known,
            acceptance=lambda now: 0.05 if unfit[0] < now < unfit[1] else 0.88,
        )
        world.run(2 * HOUR)
        assert (world.state.cap, world.state.trial) == (0, None) or world.state.trial is not None
        assert Action.OFF in world.actions()
        world.run(4 * HOUR)
        assert world.state.cap > 0
        assert world.state.trial is None


def test_a_load_that_swings_about_the_limit_does_not_make_it_flap():
    for seed in SEEDS:
        world = World(
            POLICY, seed=seed, known=TUNED, batch=lambda now: 14.0 if now // 60 % 2 else 18.0, acceptance=lambda _: 0.88
        )
        world.run(8 * HOUR)
        assert len(world.actions()) <= 8, "a change an hour at most"


def test_when_the_load_falls_it_is_tried_before_its_time():
    slow = Policy(window=30, rest=120, retry=36000, longest_retry=36000)
    for seed in SEEDS:
        world = World(slow, seed=seed, known=TUNED, batch=lambda now: 32.0 if now < 3600 else 2.0).run(2 * HOUR)
        assert world.actions() == [Action.OFF, Action.TRY, Action.ON]


def test_one_odd_window_decides_nothing():
    world = World(POLICY, known=TUNED, noise=0.05).run(HOUR)
    world.acceptance = lambda _: 0.0
    world.run(1)
    world.acceptance = lambda _: 0.88
    world.run(HOUR)

    assert not world.actions()


def test_positions_that_are_seldom_accepted_are_not_drafted_and_come_back_when_they_are():
    for seed in SEEDS:
        world = World(POLICY, seed=seed, k=8, acceptance=lambda now: 0.6 if now < HOUR * 60 else 0.95, noise=0.05)
        world.run(HOUR)
        assert Action.LOWER in world.actions()
        assert 1 <= world.state.cap < 8
        world.run(6 * HOUR)
        assert world.state.cap == 8


@pytest.mark.parametrize("batch", [1, 4, 16, 32])
@pytest.mark.parametrize("acceptance", [0.1, 0.6, 0.88])
def test_in_the_long_run_it_costs_little_more_than_the_best_fixed_setting(batch: int, acceptance: float):
    """Of nothing and the profile's K; trials of one engine in two are part of it."""
    costs = []
    for seed in range(2):
        world = World(POLICY, seed=seed, known=TUNED, batch=lambda _: batch, acceptance=lambda _: acceptance)
        world.run(16 * HOUR)
        late = world.log_times[4 * HOUR :]
        best = min(math.log(tpot(batch, 0, acceptance)), math.log(tpot(batch, 4, acceptance)))
        costs.append(sum(mean for mean, _ in late) / len(late) - best)

    assert sum(costs) / len(costs) < math.log(1.03)


def test_a_change_that_makes_it_slower_is_undone_and_not_made_again():
    """Seldom accepted positions that cost nothing: fewer of them is worse in this world."""
    world = World(Policy(seldom=0.7), k=4, acceptance=lambda _: 0.8, noise=0.02).run(4 * HOUR)

    assert world.actions()[:2] == [Action.LOWER, Action.UNDO]
    assert world.actions().count(Action.LOWER) == 1
    assert world.state.cap == 4
