"""The loop: look, decide, act, write down why. How it acts is a member of the family: by restarts, or by steering."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import httpx

from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation.journal import Journal, Memory
from launcher.operate.speculation.look import Watcher
from launcher.operate.speculation.metrics import Metrics
from launcher.operate.speculation.observation import Window
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action, Decision, State
from launcher.operate.speculation.steer import SteerState

DONE, DRY, NOT_DONE, LATER = "yes", "dry run", "no", "later"
_KEPT = 24
"""Windows; more than any policy counts."""

S = TypeVar("S", State, SteerState)


@dataclass(frozen=True, slots=True)
class Options:
    """How the controller may act."""

    policy: Policy
    dry_run: bool = False
    """Decide, and do nothing."""
    allow_downtime: bool = False
    """Restart an engine also when nobody else can answer meanwhile."""
    drain_within: float = 120.0
    """Seconds that an engine's requests may need to end before it is restarted."""


class Controller(ABC, Generic[S]):
    """Of one pool of a running deployment whose engines speculate."""

    def __init__(
        self,
        directory: RunDirectory,
        memory: Memory,
        state: S,
        options: Options,
        journal: Journal,
        metrics: Metrics,
        tell: Callable[[str], None],
    ) -> None:
        """``memory``: of this deployment; ``state``: the part of it that this kind of controller goes by."""
        self.directory, self.options, self.tell = directory, options, tell
        self.memory = memory
        self.state: S = state
        self.windows: list[Window] = []
        self._metrics = metrics
        self._journal = journal

    async def run(self) -> None:
        """Until cancelled, or the deployment ends; raises :class:`RunDirectoryError` then."""
        watched = self.caps()
        urls = {each.name: f"{each.url}/metrics" for each in self.directory.running().instances if each.name in watched}
        async with httpx.AsyncClient(trust_env=False) as client:
            watcher = Watcher(urls, client, self.options.policy.warm_up)
            while True:
                window = await watcher.window(self.options.policy.window, self.caps())
                self._refuse_another()
                await self._step(window)
                self._refuse_another()

    def _refuse_another(self) -> None:
        if self.directory.running().mark != self.memory.mark:
            raise RunDirectoryError("the deployment was started anew: start the controller again, too")

    async def _step(self, window: Window) -> None:
        self.windows = [*self.windows, window][-_KEPT:]
        now = time.time()
        decision = self.decide(window, now)
        then, done = self.after(decision, now), DONE
        if self.options.dry_run:
            if decision.action is not Action.KEEP:
                then, done = replace(self.state, changed_at=now), DRY
        elif decision.action is not Action.KEEP or not self.is_settled():
            # Before anything is done: whoever comes after a controller that is killed meanwhile brings it to an end.
            self._remember(then)
            done = await self.do(then)
            then = replace(self.state if done == NOT_DONE else then, changed_at=time.time())
            self.windows = []
        self.state = then
        self._journal.note(decision, then, done=done)
        if not self.options.dry_run:
            self._remember(then)
        self._metrics.tell(decision, cap=decision.cap, tries=self.tries(), done=done)
        self.tell(f"{decision.action}: {decision.reason}" + ("" if done == DONE else f" ({done})"))

    def _remember(self, state: S) -> None:
        self._journal.remember(replace(self.memory, state=state))

    @abstractmethod
    def caps(self) -> Mapping[str, int]:
        """Of each engine that is watched: the draft tokens that it may draft at most, as it runs now."""

    @abstractmethod
    def decide(self, window: Window, now: float) -> Decision:
        """By all windows since the last change; the newest one is not in what is known yet."""

    @abstractmethod
    def after(self, decision: Decision, now: float) -> S:
        """The state once it is done."""

    @abstractmethod
    def is_settled(self) -> bool:
        """Whether all is as the state wants it."""

    @abstractmethod
    async def do(self, then: S) -> str:
        """Bring it there; what became of it."""

    @abstractmethod
    def tries(self) -> bool:
        """Whether it is being found out what speculation gains."""
