"""Runs a plan: engines together, the proxy last; watches all; stops them in the opposite order."""

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import httpx

from launcher import machine
from launcher.errors import InstanceDiedError, LauncherError, RunDirectoryError
from launcher.local import operator_key
from launcher.local.child import KEEPER_MARGIN
from launcher.local.control import Order, listening
from launcher.local.declarations import Declarations
from launcher.local.deployment import Deployment, State
from launcher.local.device_memory import DeviceMemory, Look
from launcher.local.recipes import ENGINE_GRACE, engine_recipes, proxy_grace, proxy_recipe
from launcher.local.run_directory import RunDirectory
from launcher.local.runner import Runner, Surroundings
from launcher.local.stop_signals import stop_signals
from launcher.local.turns import Turns
from launcher.local.watch import Watch, cancel
from launcher.plan import Plan, with_argv
from proxy.topology import Role

_KEEPERS = 3 * KEEPER_MARGIN


class Reporter(Protocol):
    """Where progress is shown."""

    def changed(self, deployment: Deployment) -> None:
        """Some instance's state changed."""

    def warn(self, text: str) -> None:
        """Something that somebody should look at, but that goes on."""

    def stopping(self) -> None:
        """From now on everything is being stopped."""


class Supervisor:
    """One deployment, from the first process to the last."""

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        environ: Mapping[str, str],
        client: httpx.AsyncClient,
        reporter: Reporter,
        look: Look = machine.device_uses,
    ) -> None:
        """``environ`` is the launcher's, ``look`` asks the driver what is taken of devices."""
        self._plan = plan
        self._directory = directory
        self._reporter = reporter
        self._started_at = time.time()
        self._ready = False
        self._mark = uuid.uuid4().hex
        self._is_written = True
        engines = [*engine_recipes(plan, directory, environ, self._mark)]
        self._declarations = Declarations(plan.engines, directory, environ, reporter.warn)
        around = Surroundings(
            client,
            Turns({each.name: each.devices for each in engines}),
            DeviceMemory(look, reporter.warn),
            self._publish,
            self._declarations.renew,
        )
        self._engines = [Runner(recipe, around) for recipe in engines]
        self._proxy = Runner(proxy_recipe(plan, directory, environ, self._mark), around)
        self._watches = {each.recipe.name: Watch(each) for each in (*self._engines, self._proxy)}

    async def run(self, once_ready: Callable[[], Awaitable[bool]]) -> bool:
        """Until a signal, or ``once_ready`` returns ``False``, or the deployment cannot serve any more.

        Returns whether everything became ready. Raises :class:`LauncherError` when something ended or never got ready.
        Whatever happens, nothing runs any more afterwards.
        """
        self._directory.write_plan(self._plan)
        operator_key.make(self._directory)
        with stop_signals() as (stop, at_once):
            work = asyncio.create_task(self._serve(once_ready), name="deployment")
            stopped = asyncio.create_task(stop.wait(), name="stop signal")
            lost = asyncio.create_task(self._directory.lost(), name="run directory")
            try:
                await asyncio.wait({work, stopped, lost}, return_when=asyncio.FIRST_COMPLETED)
                for ended in (work, lost):
                    if ended.done():
                        ended.result()
            finally:
                self._reporter.stopping()
                await cancel(work, stopped, lost)
                await self._stop(at_once)
        return self._ready

    def deployment(self) -> Deployment:
        """What runs now."""
        return Deployment(
            profile=self._plan.profile,
            launcher_pid=os.getpid(),
            started_at=self._started_at,
            mark=self._mark,
            address=self._plan.proxy.url,
            model=self._plan.served_name,
            ready=self._ready,
            stops_within=proxy_grace(self._plan) + 2 * ENGINE_GRACE + _KEEPERS,
            instances=tuple(runner.state for runner in (*self._engines, self._proxy)),
            kv_lease=self._plan.kv_lease,
        )

    async def _serve(self, once_ready: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with (
                listening(self._directory.path, self._follow, self._reporter.warn),
                asyncio.TaskGroup() as group,
            ):
                tasks = [self._run_in(group, engine) for engine in self._engines]
                for engine in self._engines:
                    await engine.started.wait()
                await self._declarations.complete()
                tasks.append(self._run_in(group, self._proxy))
                await self._proxy.started.wait()
                self._ready = True
                self._publish()
                if not await once_ready():
                    for task in tasks:
                        task.cancel()
        except ExceptionGroup as group:
            errors, others = group.split(LauncherError)
            if others is not None or errors is None:
                raise
            raise _first(errors) from None

    def _run_in(self, group: asyncio.TaskGroup, runner: Runner) -> "asyncio.Task[None]":
        return group.create_task(self._run(runner), name=runner.recipe.name)

    async def _run(self, runner: Runner) -> None:
        """Start it, then watch it: an engine may end while others still load."""
        await runner.start()
        watch, error = self._watches[runner.recipe.name], None
        while True:
            last = await watch.until_failed(error)
            alive = [engine.recipe.role for engine in self._engines if engine.state.state is not State.FAILED]
            if self._proxy.state.state is State.FAILED or not {Role.DECODE, Role.AGGREGATED}.intersection(alive):
                tail = last.log_tail if isinstance(last, InstanceDiedError) else ()
                raise InstanceDiedError(f"{runner.state.reason}; nothing is left that could answer", tail)
            error = await watch.until_revived()

    async def _follow(self, order: Order) -> None:
        if not self._ready:
            raise RunDirectoryError("the deployment is still starting: `launcher status` says how far it is")
        watch = self._watches.get(order.restart)
        if watch is None:
            raise RunDirectoryError(f"no instance {order.restart}; there are: {', '.join(self._watches)}")
        if order.argv is not None:
            self._plan = with_argv(self._plan, order.restart, order.argv)
            self._directory.rewrite_plan(self._plan)
            watch.runner.follow(order.argv)
            self._declarations.follow(self._plan.engines)
        await watch.restart()

    async def _stop(self, at_once: asyncio.Event) -> None:
        """The proxy first, since running requests need the engines; a second signal breaks these requests off.

        Prefill last: an engine that ends takes the KV along that decode still reads.
        """
        hurry = asyncio.create_task(self._hurry(at_once), name="second stop signal")
        await self._proxy.stop()
        await cancel(hurry)
        for last in (False, True):
            await asyncio.gather(
                *(engine.stop() for engine in self._engines if (engine.recipe.role == Role.PREFILL) is last)
            )

    async def _hurry(self, at_once: asyncio.Event) -> None:
        await at_once.wait()
        self._proxy.hurry()

    def _publish(self) -> None:
        deployment = self.deployment()
        self._reporter.changed(deployment)
        try:
            self._directory.write_state(deployment)
            self._is_written = True
        except RunDirectoryError as exc:  # a full disk is no reason to stop serving
            if self._is_written:
                self._reporter.warn(f"{exc}; `launcher status` does not show what happens from now on")
            self._is_written = False


def _first(group: BaseExceptionGroup[LauncherError]) -> LauncherError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
