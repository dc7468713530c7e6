"""The loop: look, decide, act, write down why."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx

from launcher.errors import LauncherError, RunDirectoryError
from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation import act
from launcher.operate.speculation.cap import config_of, k_of
from launcher.operate.speculation.decide import after, counted, decide
from launcher.operate.speculation.journal import Journal, Memory
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.look import Watcher
from launcher.operate.speculation.metrics import Metrics
from launcher.operate.speculation.observation import Window
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.state import Action, Decision, State
from launcher.plan import EngineInstance
from proxy.pools import by_name

DONE, DRY, NOT_DONE, LATER = "yes", "dry run", "no", "later"
_KEPT = 24
"""Windows; more than any policy counts."""


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


class Controller:
    """Of the engines of one pool of a running deployment."""

    def __init__(
        self,
        directory: RunDirectory,
        pool: str,
        tuned: Knowledge,
        options: Options,
        metrics: Metrics,
        tell: Callable[[str], None],
    ) -> None:
        """``pool``: as :attr:`proxy.topology.Instance.pool`, with engines that speculate. ``tuned``: of a tuning.

        Raises :class:`RunDirectoryError` when nothing runs.
        """
        self._directory, self._options, self._metrics, self._tell = directory, options, metrics, tell
        self._journal = Journal(directory)
        self._memory = _memory(directory, self._journal, pool, tuned)
        self._windows: list[Window] = []

    async def run(self) -> None:
        """Until cancelled, or the deployment ends; raises :class:`RunDirectoryError` then."""
        policy, deployment = self._options.policy, self._directory.running()
        urls = {each.name: f"{each.url}/metrics" for each in deployment.instances if each.name in self._memory.full}
        async with httpx.AsyncClient(trust_env=False) as client:
            watcher = Watcher(urls, client, policy.warm_up)
            while True:
                caps = act.caps(self._directory, self._memory.full)
                window = await watcher.window(policy.window, caps)
                if self._directory.running().mark != self._memory.mark:
                    raise RunDirectoryError("the deployment was started anew: start the controller again, too")
                await self._step(window)

    async def _step(self, window: Window) -> None:
        policy, state = self._options.policy, self._memory.state
        self._windows = [*self._windows, window][-_KEPT:]
        known = self._memory.known
        for traffic in counted([window], policy, lambda each: each.cap == 0):
            assert traffic.tpot
            known = known.plus(traffic.batch, traffic.tpot)
        now = time.time()
        decision = decide(state, self._windows, known, now, policy)
        then = after(state, decision, self._windows, now, policy, next(iter(self._memory.full)))
        self._memory = replace(self._memory, known=known)
        if self._options.dry_run:
            done, then = self._dry(decision, state, now)
        elif decision.action is Action.KEEP and self._wanted(state) == act.caps(self._directory, self._memory.full):
            done = DONE
        else:
            # Before anything is done: whoever comes after a controller that is killed meanwhile brings it to an end.
            self._journal.remember(replace(self._memory, state=then))
            done = await self._do(then)
            if done == NOT_DONE:
                then = state
            then = replace(then, changed_at=time.time())
            self._windows = []
        self._memory = replace(self._memory, state=then)
        self._journal.note(decision, then, done=done)
        if not self._options.dry_run:
            self._journal.remember(self._memory)
        self._metrics.tell(decision, then, done)
        self._tell(f"{decision.action}: {decision.reason}" + ("" if done == DONE else f" ({done})"))

    def _dry(self, decision: Decision, state: State, now: float) -> tuple[str, State]:
        return (DONE, state) if decision.action is Action.KEEP else (DRY, replace(state, changed_at=now))

    async def _do(self, then: State) -> str:
        wanted = self._wanted(then)
        now = act.caps(self._directory, self._memory.full)
        changed = [name for name, cap in wanted.items() if now[name] != cap]
        lonely = [name for name in changed if act.alone(self._directory, name)]
        if lonely and not self._options.allow_downtime:
            self._tell(
                f"{lonely[0]} cannot be restarted without failed requests, as nobody else answers meanwhile: give its "
                "role a second replica, or allow it by --allow-downtime"
            )
            return NOT_DONE
        try:
            is_done = await asyncio.to_thread(
                act.bring,
                *(self._directory, self._memory.full, wanted),
                within=self._options.drain_within,
                tell=self._tell,
            )
        except LauncherError as exc:
            self._tell(str(exc))
            return NOT_DONE
        return DONE if is_done else LATER

    def _wanted(self, state: State) -> dict[str, int]:
        """The cap of each engine."""
        return {
            name: min(k_of(config), state.last if name == state.trial else state.cap)
            for name, config in self._memory.full.items()
        }


def _memory(directory: RunDirectory, journal: Journal, pool: str, tuned: Knowledge) -> Memory:
    deployment = directory.running()
    remembered = journal.remembered(deployment.mark)
    if remembered is not None:
        return replace(remembered, known=replace(remembered.known, tuned=tuned.tuned or remembered.known.tuned))
    full = {each.name: config_of(each) for each in _speculating(directory) if each.pool == pool}
    highest = max(map(k_of, full.values()))
    return Memory(deployment.mark, full, State(highest, highest, time.time(), highest), tuned)


def speculating_pool(directory: RunDirectory, wanted: str | None) -> str:
    """The one with engines that speculate, or of several the one that is ``wanted``, by its name.

    Raises :class:`RunDirectoryError` when there is none, or it is not clear which.
    """
    pools = [*dict.fromkeys(each.pool for each in _speculating(directory))]
    named = {by_name(pool): pool for pool in pools}
    if not pools:
        raise RunDirectoryError(
            f"no engine in {directory.path} speculates: set `speculation` in the profile, e.g. by "
            "`launcher tune speculation`, and start it again"
        )
    if wanted is not None and wanted not in named:
        raise RunDirectoryError(f"no pool {wanted} speculates; these do: {', '.join(named)}")
    if wanted is None and len(pools) > 1:
        raise RunDirectoryError(f"several pools speculate: name one with --pool: {', '.join(named)}")
    return pools[0] if wanted is None else named[wanted]


def engines_of(directory: RunDirectory, pool: str) -> int:
    """How many of its engines speculate."""
    return sum(each.pool == pool for each in _speculating(directory))


def _speculating(directory: RunDirectory) -> list[EngineInstance]:
    """Those that generate, and speculate as the profile has them."""
    deployment, plan = directory.running(), directory.read_plan()
    remembered = Journal(directory).remembered(deployment.mark)
    engines = [] if plan is None else [each for each in plan.engines if each.role in act.ANSWERING]
    return [each for each in engines if k_of(config_of(each)) or (remembered and each.name in remembered.full)]
