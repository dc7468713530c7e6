"""One instance through its starts, ends and restarts."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import httpx

from launcher import machine
from launcher.errors import InstanceDiedError, LauncherError, NotReadyError
from launcher.loading import Loading
from launcher.local import scheduling
from launcher.local.child import Child
from launcher.local.crashes import Crashes
from launcher.local.deployment import PROXY, InstanceState, State
from launcher.local.device_memory import DeviceMemory
from launcher.local.keeper import marked
from launcher.local.load_progress import MEANINGFUL, LoadProgress, last_lines
from launcher.local.readiness import ready
from launcher.local.recipe import Recipe
from launcher.local.start_order import Ahead
from launcher.local.turns import Turns
from launcher.log_signatures import likely_cause, wanted_memory

_LOOK = 0.5
"""Seconds between two looks at the log of a starting engine."""
_SHOWN = 30
"""Last lines of a dead instance that are shown."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the runners of one deployment share."""

    client: httpx.AsyncClient
    turns: Turns
    memory: DeviceMemory
    changed: Callable[[], None]
    """Some state has changed."""
    before_restart: Callable[[str], Awaitable[None]]
    """An engine is about to load its weights again."""


class Runner:
    """Runs one recipe; the only writer of its :attr:`state`."""

    def __init__(self, recipe: Recipe, around: Surroundings) -> None:
        self.recipe = recipe
        self.state = InstanceState(recipe.name, recipe.role, recipe.url, start_budget=recipe.start_budget)
        self._around = around
        self.started = asyncio.Event()
        """Set when it was ready for the first time."""
        self._child: Child | None = None
        self._crashes = Crashes()
        self._ready_since: float | None = None
        self._family: frozenset[int] = frozenset()
        """The processes of the last run, as far as they matter to its devices."""

    async def start(self, *, again: bool = False) -> None:
        """When it is its turn, start it and wait until it is ready; its budget counts from the start of its process.

        Raises :class:`InstanceDiedError` as soon as it ends, :class:`NotReadyError` when its budget is used up. If it
        found too little memory while a neighbour on its devices came or went, it is tried once more.
        """
        name = self.recipe.name
        async with self._around.turns.turn(name, self._wait):
            if again and self._is_engine:
                await self._around.memory.given_back(name, self.recipe.devices, self._family)
                await self._around.before_restart(name)
            unrest = self._around.turns.unrest(name)
            try:
                await self._start()
            except InstanceDiedError as exc:
                found_too_little = wanted_memory(last_lines(self.recipe.command.log, MEANINGFUL))
                if not found_too_little or self._around.turns.unrest(name) == unrest:
                    raise
                reason = f"{exc}; tried once more, since a neighbour on its devices came or went meanwhile"
                self._down(State.RESTARTING, reason=reason)
                await self._around.memory.given_back(name, self.recipe.devices, self._family)
                await self._start()

    async def _start(self) -> None:
        progress = LoadProgress(self.recipe.command.log)
        self._ready_since = None
        command = self.recipe.command
        command = replace(command, env={**command.env, **self.recipe.secrets()})
        try:
            self._child = child = await Child.start(command)
        except (OSError, ValueError) as exc:  # no file descriptors left, a zero byte in the environment...
            raise InstanceDiedError(f"{self.recipe.name} cannot be started: {exc}") from exc
        self._around.turns.came_or_went(self.recipe.name)
        self._set(
            State.STARTING,
            pid=child.pid,
            keeper_pid=child.keeper_pid,
            started_at=time.time(),
            waits_for=None,
            loading=progress.now if self._is_engine else Loading("starting"),
        )
        deadline = time.monotonic() + self.recipe.start_budget
        end = asyncio.ensure_future(child.wait())
        answers = asyncio.ensure_future(ready(self._around.client, self.recipe.url + self.recipe.ready_path))
        try:
            while not answers.done():
                await asyncio.wait({end, answers}, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                if self._is_engine and progress.advance():
                    await self._remember_family()
                    self._set(State.STARTING, loading=progress.now)
                if end.done():
                    raise self._died(end.result())
                if time.monotonic() > deadline:
                    raise self._late(progress.now)
            answers.result()
        finally:
            answers.cancel()
            end.cancel()
        self._check_answerer(child)
        await self._remember_family()
        if self.recipe.on_cpu:
            await scheduling.settle(child.keeper_pid)
        self._ready_since = time.monotonic()
        self._set(State.READY, loading=None)
        self.started.set()

    async def supervise(self, error: LauncherError | None = None) -> LauncherError:
        """Start it again whenever it ends by itself; returns the last error when that became a crash loop.

        ``error``: what has gone wrong already.
        """
        while True:
            if error is None:
                error = await self.end()
            pause = self._crashes.pause(0.0 if self._ready_since is None else time.monotonic() - self._ready_since)
            if pause is None:
                self._down(State.FAILED, reason=f"crash loop: {error}")
                return error
            self._down(State.RESTARTING, restarts=self.state.restarts + 1, reason=str(error))
            await asyncio.sleep(pause)
            error = await self._try_again()

    async def end(self) -> InstanceDiedError:
        """Wait until it ends by itself; how it did."""
        assert self._child is not None
        return self._died(await self._child.wait())

    async def restart(self, reason: str) -> LauncherError | None:
        """End it and start it again, also out of a crash loop; what went wrong, if anything."""
        self._crashes.forget()
        self._set(State.RESTARTING, restarts=self.state.restarts + 1, reason=reason)
        assert self._child is not None
        await self._child.stop()
        self._around.turns.came_or_went(self.recipe.name)
        self._down(State.RESTARTING)
        return await self._try_again()

    def follow(self, argv: Sequence[str]) -> None:
        """From its next start on, this is its command line."""
        self.recipe = replace(self.recipe, command=replace(self.recipe.command, argv=argv))

    async def stop(self) -> None:
        """End it, if it runs."""
        if self._child is not None:
            await self._child.stop()
            if self.state.state is not State.FAILED:
                self._down(State.STOPPED)

    def hurry(self) -> None:
        """While it is being stopped: ask again, which ends it sooner."""
        if self._child is not None:
            self._child.hurry()

    @property
    def _is_engine(self) -> bool:
        return self.recipe.role != PROXY

    async def _try_again(self) -> LauncherError | None:
        try:
            await self.start(again=True)
        except LauncherError as exc:
            assert self._child is not None
            await self._child.stop()
            return exc
        return None

    def _wait(self, ahead: Ahead) -> None:
        self._set(self.state.state, waits_for=str(ahead))

    async def _remember_family(self) -> None:
        if self.recipe.devices:
            self._family = frozenset(await asyncio.to_thread(marked, self.recipe.command.mark))

    def _check_answerer(self, child: Child) -> None:
        """Whoever answers on our port must be our child: two deployments may have chosen the same port at once."""
        port = httpx.URL(self.recipe.url).port or 80
        listener = machine.listeners().get(port)
        if listener and listener.pid and os.getpgid(listener.pid) != child.keeper_pid:
            raise InstanceDiedError(
                f"port {port} of {self.recipe.name} is answered by another process (pid {listener.pid}): start "
                "again, it will take another port"
            )

    def _died(self, code: int) -> InstanceDiedError:
        self._around.turns.came_or_went(self.recipe.name)
        lines = last_lines(self.recipe.command.log, MEANINGFUL)
        how = f"was killed by signal {code - 128}" if code > 128 else f"ended with code {code}"
        cause = likely_cause(lines)
        return InstanceDiedError(f"{self.recipe.name} {how}{f': {cause}' if cause else ''}", lines[-_SHOWN:])

    def _late(self, loading: Loading) -> NotReadyError:
        return NotReadyError(
            f"{self.recipe.name} was not ready {self.recipe.start_budget:.0f} s after its start (last: {loading}); "
            f"raise startup_timeout, or look into {self.recipe.command.log}"
        )

    def _down(self, state: State, **changes: object) -> None:
        self._set(state, pid=None, keeper_pid=None, waits_for=None, loading=None, **changes)

    def _set(self, state: State, **changes: object) -> None:
        self.state = replace(self.state, state=state, **changes)  # type: ignore[arg-type]
        self._around.changed()
