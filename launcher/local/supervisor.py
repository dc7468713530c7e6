"""Runs a plan: engines together, the proxy last; watches all; stops them in the opposite order."""

import asyncio
import os
import signal
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import httpx

from launcher.errors import InstanceDiedError, LauncherError, RunDirectoryError
from launcher.local.child import KEEPER_MARGIN, Command
from launcher.local.declarations import Declarations
from launcher.local.deployment import Deployment, State
from launcher.local.run_directory import RunDirectory
from launcher.local.runner import Recipe, Runner
from launcher.plan import Plan
from launcher.profile import Device
from proxy.topology import Role

_PROXY_MARGIN = 4.0
"""Seconds that the proxy needs to end when the time of its requests is up: for last words, and for its last spans."""
_ENGINE_GRACE = 4.0
_KEEPERS = 3 * KEEPER_MARGIN
_PROXY_START_BUDGET = 30.0


class Reporter(Protocol):
    """Where progress is shown."""

    def stage(self, instance: str, stage: int) -> None:
        """An engine reached this index of :data:`launcher.local.load_progress.STAGES`."""

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
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._reporter = reporter
        self._started_at = time.time()
        self._ready = False
        self._mark = uuid.uuid4().hex
        self._is_written = True
        engines = _engine_recipes(plan, directory, environ, self._mark)
        self._declarations = Declarations(plan.engines, directory, environ, reporter.warn)
        self._engines = [
            Runner(recipe, client, self._publish, reporter.stage, self._declarations.renew) for recipe in engines
        ]
        self._proxy = Runner(_proxy_recipe(plan, directory, environ, self._mark), client, self._publish, reporter.stage)

    async def run(self, once_ready: Callable[[], Awaitable[bool]]) -> bool:
        """Until a signal, or ``once_ready`` returns ``False``, or the deployment cannot serve any more.

        Returns whether everything became ready. Raises :class:`LauncherError` when something ended or never got ready.
        Whatever happens, nothing runs any more afterwards.
        """
        self._directory.write_plan(self._plan)
        with _stop_signals() as (stop, at_once):
            work = asyncio.create_task(self._serve(once_ready), name="deployment")
            stopped = asyncio.create_task(stop.wait(), name="stop signal")
            try:
                await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
            finally:
                self._reporter.stopping()
                await _cancel(work, stopped)
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
            stops_within=_proxy_grace(self._plan) + 2 * _ENGINE_GRACE + _KEEPERS,
            instances=tuple(runner.state for runner in (*self._engines, self._proxy)),
            kv_lease=self._plan.kv_lease,
        )

    async def _serve(self, once_ready: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.TaskGroup() as starts:
                for engine in self._engines:
                    starts.create_task(engine.start(), name=f"start {engine.recipe.name}")
            async with asyncio.TaskGroup() as watches:
                tasks = [self._watch_in(watches, engine) for engine in self._engines]
                await self._declarations.complete()
                await self._proxy.start()
                tasks.append(self._watch_in(watches, self._proxy))
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

    def _watch_in(self, group: asyncio.TaskGroup, runner: Runner) -> "asyncio.Task[None]":
        return group.create_task(self._watch(runner), name=f"watch {runner.recipe.name}")

    async def _watch(self, runner: Runner) -> None:
        error = await runner.supervise()
        alive = [engine.recipe.role for engine in self._engines if engine.state.state is not State.FAILED]
        if self._proxy.state.state is State.FAILED or not {Role.DECODE, Role.AGGREGATED}.intersection(alive):
            tail = error.log_tail if isinstance(error, InstanceDiedError) else ()
            raise InstanceDiedError(f"{runner.state.reason}; nothing is left that could answer", tail)

    async def _stop(self, at_once: asyncio.Event) -> None:
        """The proxy first, since running requests need the engines; a second signal breaks these requests off.

        Prefill last: an engine that ends takes the KV along that decode still reads.
        """
        hurry = asyncio.create_task(self._hurry(at_once), name="second stop signal")
        await self._proxy.stop()
        await _cancel(hurry)
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


def _engine_recipes(plan: Plan, directory: RunDirectory, environ: Mapping[str, str], mark: str) -> Iterator[Recipe]:
    # Kubernetes sets VLLM_PORT to an address where a service is called vllm, and vLLM takes it for its own port.
    environ = {name: value for name, value in environ.items() if name != "VLLM_PORT"}
    for engine in plan.engines:
        yield Recipe(
            name=engine.name,
            role=engine.role,
            url=engine.url,
            ready_path="/health",
            command=Command(
                engine.argv,
                {**environ, **engine.env},
                directory.log(engine.name),
                _ENGINE_GRACE,
                f"{mark}/{engine.name}",
            ),
            start_budget=plan.startup_timeout,
            on_cpu=plan.device is Device.CPU,
        )


def _proxy_recipe(plan: Plan, directory: RunDirectory, environ: Mapping[str, str], mark: str) -> Recipe:
    proxy = plan.proxy
    return Recipe(
        name=proxy.name,
        role="proxy",
        url=proxy.operators_url,
        ready_path="/ready",
        command=Command(
            proxy.argv, {**environ, **proxy.env}, directory.log(proxy.name), _proxy_grace(plan), f"{mark}/{proxy.name}"
        ),
        start_budget=_PROXY_START_BUDGET,
    )


def _proxy_grace(plan: Plan) -> float:
    return plan.proxy.drain + _PROXY_MARGIN


@contextmanager
def _stop_signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Set on the first and on the second of SIGINT, SIGTERM and SIGHUP (a closed terminal)."""
    first, second = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means it
        signals.append(signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, lambda: (second if first.is_set() else first).set())
    try:
        yield first, second
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def _cancel(*tasks: "asyncio.Task[object]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _first(group: BaseExceptionGroup[LauncherError]) -> LauncherError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
