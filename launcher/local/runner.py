"""One instance through its starts, ends and restarts."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import httpx

from launcher import machine
from launcher.errors import InstanceDiedError, LauncherError, NotReadyError
from launcher.local import scheduling
from launcher.local.child import Child, Command
from launcher.local.deployment import InstanceState, State
from launcher.local.load_progress import STAGES, LoadProgress, last_lines, likely_cause
from launcher.local.readiness import ready

MOST_CRASHES = 3
CRASH_WINDOW = 300.0
"""Seconds: this many ends by itself within this time are a crash loop."""
LONGEST_PAUSE = 30.0
"""Seconds before a restart, doubled from 1 with every crash."""
_LOOK = 0.5
"""Seconds between two looks at the log of a starting engine."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to run one instance."""

    name: str
    role: str
    url: str
    ready_path: str
    """Answers 200 when the instance can serve."""
    command: Command
    start_budget: float
    """Seconds until it must be ready."""
    on_cpu: bool = False
    """An engine whose threads need :mod:`launcher.local.scheduling`."""


class Runner:
    """Runs one recipe; the only writer of its :attr:`state`."""

    def __init__(
        self,
        recipe: Recipe,
        client: httpx.AsyncClient,
        changed: Callable[[], None],
        stage: Callable[[str, int], None],
        before_restart: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.recipe = recipe
        self.state = InstanceState(recipe.name, recipe.role, recipe.url)
        self._client = client
        self._changed = changed
        self._stage = stage
        self._before_restart = before_restart
        self._child: Child | None = None
        self._crashes: deque[float] = deque()

    async def start(self) -> None:
        """Start it and wait until it is ready.

        Raises :class:`InstanceDiedError` as soon as it ends, :class:`NotReadyError` when its budget is used up.
        """
        progress = LoadProgress(self.recipe.command.log)
        self._stage(self.recipe.name, 0)
        try:
            self._child = child = await Child.start(self.recipe.command)
        except (OSError, ValueError) as exc:  # no file descriptors left, a zero byte in the environment...
            raise InstanceDiedError(f"{self.recipe.name} cannot be started: {exc}") from exc
        self._set(State.STARTING, pid=child.pid, keeper_pid=child.keeper_pid, started_at=time.time())
        deadline = time.monotonic() + self.recipe.start_budget
        end = asyncio.ensure_future(child.wait())
        answers = asyncio.ensure_future(ready(self._client, self.recipe.url + self.recipe.ready_path))
        try:
            while not answers.done():
                await asyncio.wait({end, answers}, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                if progress.advance():
                    self._stage(self.recipe.name, progress.stage)
                if end.done():
                    raise self._died(end.result())
                if time.monotonic() > deadline:
                    raise self._late(progress.stage)
            answers.result()
        finally:
            answers.cancel()
            end.cancel()
        self._check_answerer(child)
        if self.recipe.on_cpu:
            await scheduling.settle(child.keeper_pid)
        self._set(State.READY)

    async def supervise(self) -> LauncherError:
        """Start it again whenever it ends by itself; returns the last error when that became a crash loop."""
        assert self._child is not None
        while True:
            code = await self._child.wait()
            error: LauncherError = self._died(code)
            while True:
                if self._is_crash_loop():
                    self._set(State.FAILED, pid=None, keeper_pid=None, reason=f"crash loop: {error}")
                    return error
                pause = min(LONGEST_PAUSE, 2.0 ** (len(self._crashes) - 1))
                restarts = self.state.restarts + 1
                self._set(State.RESTARTING, pid=None, keeper_pid=None, restarts=restarts, reason=str(error))
                await asyncio.sleep(pause)
                if self._before_restart is not None:
                    await self._before_restart(self.recipe.name)
                try:
                    await self.start()
                except LauncherError as exc:
                    error = exc
                    await self._child.stop()
                else:
                    break

    async def stop(self) -> None:
        """End it, if it runs."""
        if self._child is not None:
            await self._child.stop()
            if self.state.state is not State.FAILED:
                self._set(State.STOPPED, pid=None, keeper_pid=None)

    def hurry(self) -> None:
        """While it is being stopped: ask again, which ends it sooner."""
        if self._child is not None:
            self._child.hurry()

    def _check_answerer(self, child: Child) -> None:
        """Whoever answers on our port must be our child: two deployments may have chosen the same port at once."""
        port = httpx.URL(self.recipe.url).port or 80
        listener = machine.listeners().get(port)
        if listener and listener.pid and os.getpgid(listener.pid) != child.keeper_pid:
            raise InstanceDiedError(
                f"port {port} of {self.recipe.name} is answered by another process (pid {listener.pid}): start "
                "again, it will take another port"
            )

    def _is_crash_loop(self) -> bool:
        now = time.monotonic()
        self._crashes.append(now)
        while now - self._crashes[0] > CRASH_WINDOW:
            self._crashes.popleft()
        return len(self._crashes) >= MOST_CRASHES

    def _died(self, code: int) -> InstanceDiedError:
        tail = last_lines(self.recipe.command.log)
        how = f"was killed by signal {code - 128}" if code > 128 else f"ended with code {code}"
        cause = likely_cause(tail)
        return InstanceDiedError(f"{self.recipe.name} {how}{f': {cause}' if cause else ''}", tail)

    def _late(self, stage: int) -> NotReadyError:
        return NotReadyError(
            f"{self.recipe.name} was not ready after {self.recipe.start_budget:.0f} s (last: {STAGES[stage].title}); "
            f"raise startup_timeout, or look into {self.recipe.command.log}"
        )

    def _set(self, state: State, **changes: object) -> None:
        self.state = replace(self.state, state=state, **changes)  # type: ignore[arg-type]
        self._changed()
