"""Which of two pools gets most of the traffic: by what is gained with half of it each."""

import math
import random
from collections.abc import Callable

import pytest

from launcher.operate.speculation.observation import Seen, Traffic, Window
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action
from launcher.operate.speculation.steer import SteerState, after_steering, decide_steering
from tests.launcher.operate.simulated import accepted, tpot

POLICY = Policy(window=30, rest=120, retry=1800, longest_retry=7200)
HOUR = 120
"""Windows."""


class World:
    """Two engines, of which each gets the batch that its share of the traffic makes."""

    def __init__(
        self, seed: int, batch: Callable[[float], float], acceptance: Callable[[float], float], noise: float = 0.1
    ) -> None:
        self.now, self.state, self.windows = 0.0, SteerState(4, 0.0), list[Window]()
        self.random, self.batch, self.acceptance, self.noise = random.Random(seed), batch, acceptance, noise
        self.actions: list[Action] = []

    def run(self, windows: int) -> "World":
        for _ in range(windows):
            self.now += POLICY.window
            share = {None: 0.5, True: 0.95, False: 0.05}[self.state.prefers]
            load, rate = self.batch(self.now), self.acceptance(self.now)
            window = (
                self._seen("spec", 4, 2 * load * share, rate),
                self._seen("plain", 0, 2 * load * (1 - share), rate),
            )
            self.windows = [*self.windows, window][-24:]
            decision = decide_steering(self.state, self.windows, self.now, POLICY)
            self.state = after_steering(self.state, decision, self.windows, self.now, POLICY)
            if decision.action is not Action.KEEP:
                self.actions.append(decision.action)
                self.windows = []
        return self

    def _seen(self, name: str, k: int, batch: float, rate: float) -> Seen:
        time = tpot(max(batch, 1), k, rate) * math.exp(self.random.gauss(0, self.noise))
        tokens = batch * POLICY.window / time
        drafts = tokens / (1 + accepted(rate, k)) if k else 0.0
        positions = tuple(drafts * rate ** (at + 1) for at in range(k))
        traffic = Traffic(tokens, 20 * batch, batch, time, drafts, drafts * k, sum(positions), positions)
        return Seen(name, k, traffic)


@pytest.mark.parametrize(
    ("batch", "acceptance", "prefers"), [(1, 0.88, True), (1, 0.1, False), (32, 0.88, False), (4, 0.88, True)]
)
def test_the_faster_pool_is_preferred(batch: float, acceptance: float, prefers: bool):
    for seed in range(10):
        world = World(seed, lambda _: batch, lambda _: acceptance).run(2 * HOUR)
        settled = [each for each in world.actions if each is not Action.COMPARE]
        wanted = Action.PREFER_SPECULATION if prefers else Action.PREFER_PLAIN
        assert {*settled} == {wanted}


def test_they_are_compared_again_when_the_load_changes():
    for seed in range(10):
        world = World(seed, lambda now: 2.0 if now < 1500 else 40.0, lambda _: 0.88).run(100)
        assert world.actions == [Action.PREFER_SPECULATION, Action.COMPARE, Action.PREFER_PLAIN]


def test_they_are_compared_again_when_the_acceptance_changes():
    for seed in range(10):
        world = World(seed, lambda _: 8.0, lambda now: 0.88 if now < 1500 else 0.1).run(100)
        assert world.actions[:3] == [Action.PREFER_SPECULATION, Action.COMPARE, Action.PREFER_PLAIN]


def test_while_nothing_changes_they_are_compared_ever_more_rarely():
    world = World(0, lambda _: 2.0, lambda _: 0.88).run(24 * HOUR)

    assert 3 <= world.actions.count(Action.COMPARE) <= 16


def test_without_traffic_nothing_is_decided():
    assert not World(0, lambda _: 0.0, lambda _: 0.88).run(HOUR).actions
