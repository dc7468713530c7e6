"""A supervisor in this process, with fake engines on devices that exist on paper only, and all that it reports."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from launcher import loader, machine, planner
from launcher.inventory import DeviceUse
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.run_directory import RunDirectory
from launcher.local.supervisor import Supervisor
from launcher.plan import Plan
from tests.launcher.builders import MACHINE
from tests.launcher.local.deployments import PATIENCE, REPOSITORY


class Reports:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.deployments: list[Deployment] = []
        self.warnings: list[str] = []
        self._news = asyncio.Event()

    def changed(self, deployment: Deployment) -> None:
        self.deployments.append(deployment)
        self._news.set()

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def stopping(self) -> None:
        pass

    def instance(self, name: str) -> InstanceState:
        """As it is now."""
        return next(each for each in self.deployments[-1].instances if each.name == name)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a change that makes it true."""
        async with asyncio.timeout(PATIENCE):
            while not (self.deployments and condition()):
                self._news.clear()
                await self._news.wait()

    async def until_state(self, name: str, state: State, **values: object) -> InstanceState:
        """Until an instance is in a state, with these values."""

        def holds() -> bool:
            now = self.instance(name)
            return now.state is state and all(getattr(now, key) == value for key, value in values.items())

        await self.until(holds)
        return self.instance(name)


def planned(profile: Path, directory: RunDirectory, devices: Mapping[str, str], *overrides: str) -> Plan:
    """The plan of a profile with its engines on these devices; each waits at a gate, a file with its name."""
    inventory = replace(MACHINE, python=sys.executable, listeners=machine.listeners())
    plan = planner.plan(loader.load(str(profile), overrides), inventory, name="fakes", run_directory=directory.path)
    engines = tuple(
        replace(
            each,
            devices=tuple(devices[each.name].split()),
            env={**each.env, "FAKE_ENGINE_GATE": str(directory.path.parent / each.name)},
        )
        for each in plan.engines
    )
    return replace(plan, engines=engines)


@asynccontextmanager
async def supervised(
    plan: Plan, directory: RunDirectory, look: Callable[..., Mapping[str, DeviceUse]] = lambda devices: {}
) -> AsyncIterator[Reports]:
    """Run it; at the end all of it is stopped."""
    reports = Reports()

    async def ready() -> bool:
        return True

    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with directory.hold():
        async with httpx.AsyncClient(trust_env=False, timeout=5.0) as client:
            supervisor = Supervisor(plan, directory, environ, client, reports, look)
            running = asyncio.create_task(supervisor.run(ready))
            try:
                yield reports
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
