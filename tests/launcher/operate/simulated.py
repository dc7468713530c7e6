"""Engines whose speed follows from batch, draft tokens and acceptance, as published figures of real ones do.

A step costs a base, a part for each request, and for each draft token a part of its own and one for each request.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from launcher.operate.speculation.decide import after, counted, decide
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.observation import Seen, Traffic, Window
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action, Decision, State

# Of the published pull request: 33.8 tokens/s at batch 1 and 867.8 at batch 32 without speculation, 56.4 at batch 1
# with 4 draft tokens, and 16 % less than without at batch 32.
BASE, BY_REQUEST = 0.02935, 0.000236
BY_DRAFT, BY_DRAFT_AND_REQUEST = 0.0091, 0.00078


def step(batch: float, k: int) -> float:
    """Seconds."""
    return BASE + BY_REQUEST * batch + k * (BY_DRAFT + BY_DRAFT_AND_REQUEST * batch)


def accepted(acceptance: float, k: int) -> float:
    """Draft tokens that are accepted in a step."""
    return sum(acceptance ** (place + 1) for place in range(k))


def tpot(batch: float, k: int, acceptance: float) -> float:
    """Mean seconds by output token of one request."""
    return step(batch, k) / (1 + accepted(acceptance, k))


@dataclass
class World:
    """A deployment under the controller. Its clock goes on by a window at a time."""

    policy: Policy
    engines: int = 2
    k: int = 4
    noise: float = 0.1
    """Standard deviation of log time between windows of the same kind."""
    seed: int = 0
    known: Knowledge = field(default_factory=Knowledge)
    acceptance: Callable[[float], float] = lambda _: 0.88
    batch: Callable[[float], float] = lambda _: 1.0
    requests: float = 30.0
    """Of one engine in a window."""

    def __post_init__(self) -> None:
        self.now = 0.0
        self.random = random.Random(self.seed)
        self.state = State(self.k, self.k, 0.0, self.k)
        self.windows: list[Window] = []
        self.decisions: list[tuple[float, Decision]] = []
        self.log_times: list[tuple[float, float]] = []
        """Mean log time by output token of all engines, and the best that one cap could have done."""
        self._cold = 0

    @property
    def names(self) -> list[str]:
        return [f"decode-{number}" for number in range(self.engines)]

    def caps(self) -> Mapping[str, int]:
        return {name: self.state.last if name == self.state.trial else self.state.cap for name in self.names}

    def run(self, windows: int) -> "World":
        """So many windows more."""
        for _ in range(windows):
            self._window()
        return self

    def actions(self) -> list[Action]:
        """All but keeping."""
        return [decision.action for _, decision in self.decisions if decision.action is not Action.KEEP]

    def _window(self) -> None:
        self.now += self.policy.window
        load, rate = self.batch(self.now), self.acceptance(self.now)
        window = tuple(self._seen(name, cap, load, rate) for name, cap in self.caps().items())
        self._cold = max(0, self._cold - 1)
        self.windows = [*self.windows, window][-24:]
        for traffic in counted([window], self.policy, lambda each: each.cap == 0):
            self.known = self.known.plus(traffic.batch, traffic.tpot or 1.0)
        mean = sum(math.log(tpot(load, cap, rate)) for cap in self.caps().values()) / self.engines
        self.log_times.append((mean, min(math.log(tpot(load, k, rate)) for k in range(self.k + 1))))
        decision = decide(self.state, self.windows, self.known, self.now, self.policy)
        self.decisions.append((self.now, decision))
        self.state = after(self.state, decision, self.windows, self.now, self.policy, self.names[0])
        if decision.action is not Action.KEEP:
            self.windows, self._cold = [], self.policy.warm_up + 1

    def _seen(self, name: str, cap: int, load: float, rate: float) -> Seen:
        time = tpot(load, cap, rate) * math.exp(self.random.gauss(0, self.noise))
        steps = self.policy.window * load / (step(load, cap) or 1)
        traffic = Traffic(tokens=load * self.policy.window / time, requests=self.requests, batch=load, tpot=time)
        if cap:
            by_position = tuple(steps * rate ** (place + 1) for place in range(cap))
            traffic = replace(
                traffic, drafts=steps, drafted=steps * cap, accepted=sum(by_position), by_position=by_position
            )
        return Seen(name, cap, traffic, is_whole=self._cold == 0)
