"""Serves what is to be measured for the time of a measurement: a URL as it is, a profile from start to end."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import httpx

from launcher import loader
from launcher.local.deployment import PROXY
from launcher.local.run_directory import RunDirectory
from launcher.measure.free_ports import free_ranges
from launcher.measure.reporter import Starting
from launcher.measure.server import found
from launcher.measure.target import Engine, Target
from launcher.measure.telling import Tell, quiet
from launcher.plan import Plan
from launcher.up import up

T = TypeVar("T")


def is_url(reference: str) -> bool:
    """Whether it is the address of a server, and no profile."""
    return reference.startswith(("http://", "https://"))


async def measured(
    reference: str,
    overrides: Sequence[str],
    folder: Path,
    work: Callable[[Target], Awaitable[T]],
    tell: Tell = quiet,
    *,
    key: str | None = None,
    model: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> T:
    """What ``work`` makes of a server that is there meanwhile.

    A URL is asked for its model, unless that is named. A profile is started, on free ports, in the run directory
    ``folder/run``, where its logs stay; it has ended when this returns, whatever happens. ``key``: a client's, where
    the server asks for one. Raises what ``work`` raises; :class:`MeasureError` when a URL does not answer; what
    :func:`launcher.up.up` raises.
    """
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    if is_url(reference):
        return await work(await found(reference, headers, model))
    return await _started(reference, overrides, folder, work, tell, headers, environ)


def running(directory: RunDirectory, key: str | None = None) -> Target:
    """The deployment that runs there; raises :class:`RunDirectoryError` when none does."""
    deployment = directory.running()
    engines = tuple(
        Engine(each.name, each.role, f"{each.url}/metrics") for each in deployment.instances if each.role != PROXY
    )
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return Target(deployment.profile, deployment.address, deployment.model, headers, engines)


class _Outcome(Generic[T]):
    """Of the work."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.error: BaseException | None = None


async def _started(
    reference: str,
    overrides: Sequence[str],
    folder: Path,
    work: Callable[[Target], Awaitable[T]],
    tell: Tell,
    headers: Mapping[str, str],
    environ: Mapping[str, str],
) -> T:
    engine, side_channel, bootstrap, proxy = free_ranges(4)
    own = (
        f"ports.engine={engine}",
        f"ports.side_channel={side_channel}",
        f"ports.bootstrap={bootstrap}",
        f"proxy.port={proxy}",
    )
    name, outcome = Path(reference).stem, _Outcome[T]()

    async def once_ready(plan: Plan, _: httpx.AsyncClient) -> bool:
        try:
            outcome.values.append(await work(target_of(plan, name, headers)))
        except Exception as exc:  # noqa: BLE001  # kept until all has ended, then raised as it is
            outcome.error = exc
        return False

    await up(
        loader.resolve(reference, [*overrides, *own]),
        name=name,
        directory=_directory(folder),
        environ=environ,
        reporter=Starting(name, tell),
        tell=lambda text: tell(text, 0, 0),
        once_ready=once_ready,
    )
    if outcome.error is not None:
        raise outcome.error
    if not outcome.values:  # a signal came meanwhile
        raise KeyboardInterrupt
    return outcome.values[0]


def _directory(folder: Path) -> RunDirectory:
    return RunDirectory(folder.absolute() / "run")


def target_of(plan: Plan, name: str, headers: Mapping[str, str]) -> Target:
    """The deployment of a plan that has been started."""
    engines = tuple(Engine(each.name, each.role.value, f"{each.url}/metrics") for each in plan.engines)
    return Target(name, plan.proxy.url, plan.served_name, headers, engines)
