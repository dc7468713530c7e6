"""Looks at the metrics of a running deployment for a while."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import httpx

from launcher.advice.configured import configured
from launcher.advice.measure import canaries, idle, measured, requests
from launcher.advice.situation import Origin, Situation
from launcher.advice.thresholds import TTFT_OBJECTIVE
from launcher.advice.window import Reading, Window, read
from launcher.errors import RunDirectoryError
from launcher.local import operator_key
from launcher.local.deployment import PROXY, Deployment, InstanceState
from launcher.local.run_directory import RunDirectory
from launcher.plan import Plan
from launcher.preflight.checkpoint import read_config

STEP = 1.0
"""Seconds between two looks."""
_PATIENCE = 3.0
"""Seconds an instance has to answer."""
_MANY_CANARIES = 0.1


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen."""

    situation: Situation
    seconds: float
    requests: float | None
    """That ended meanwhile; ``None`` when nobody tells."""
    idle: bool
    """There is nothing to judge."""
    notes: tuple[str, ...]
    """What speaks against relying on it, and what could not be seen."""


async def watch(
    directory: RunDirectory, known: Situation, seconds: float, began: Callable[[Deployment], None]
) -> Watched:
    """Look for so many seconds, or until Ctrl+C; ``began`` is called after the first look.

    What is ``known`` already stays. Raises :class:`RunDirectoryError` when nothing runs, or nothing answers.
    """
    deployment = directory.read_state() if directory.holder() is not None else None
    if deployment is None or not deployment.ready:
        raise RunDirectoryError(
            f"nothing serves in {directory.path}: start it with `launcher up`, or choose another --run-dir; "
            "without --window questions are asked instead"
        )
    plan = directory.read_plan()
    windows = {each.name: Window(each.role) for each in deployment.instances}
    reasons: dict[str, str] = {}
    stop, key = asyncio.Event(), operator_key.headers(directory.path)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    # The certificate is for the name that clients use; what is asked here is on this machine.
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=_PATIENCE) as client:
        try:
            ask = partial(_reading, client, key, reasons)
            started = ended = await _look(ask, deployment.instances, windows)
            if not any(window.looks for window in windows.values()):
                raise RunDirectoryError(f"no instance tells its metrics: {'; '.join(reasons.values())}")
            began(deployment)
            until = started + seconds
            while not stop.is_set() and time.monotonic() < until:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), min(STEP, until - time.monotonic()))
                ended = await _look(ask, deployment.instances, windows)
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
    elapsed = ended - started
    situation = known.plus(measured([*windows.values()], elapsed), Origin.MEASURED)
    situation = situation.plus({} if plan is None else configured(plan, read_config(plan.model)), Origin.CONFIGURED)
    situation = situation.plus({"ttft_objective": TTFT_OBJECTIVE}, Origin.DEFAULT)
    seen = [*windows.values()]
    return Watched(situation, elapsed, requests(seen), idle(seen), tuple(_notes(windows, reasons, plan)))


async def _look(
    ask: Callable[[InstanceState], Awaitable[Reading | None]],
    instances: Sequence[InstanceState],
    windows: Mapping[str, Window],
) -> float:
    """Ask all instances; when, by ``time.monotonic``."""
    readings = await asyncio.gather(*(ask(each) for each in instances))
    for instance, reading in zip(instances, readings, strict=True):
        windows[instance.name].add(reading)
    return time.monotonic()


async def _reading(
    client: httpx.AsyncClient, key: Mapping[str, str], reasons: dict[str, str], instance: InstanceState
) -> Reading | None:
    """``key``: for the proxy; engines need none."""
    url = f"{instance.url}/metrics"
    try:
        answer = await client.get(url, headers=key if instance.role == PROXY else {})
        if answer.status_code == httpx.codes.OK:
            return read(answer.text)
        reasons[instance.name] = f"{url} answered {answer.status_code}"
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            reasons[instance.name] += (
                ", it needs a key: give the proxy an address for operators (proxy.admin), or them keys "
                "(proxy.admin_keys)"
            )
    except httpx.TimeoutException:
        reasons[instance.name] = f"{url} did not answer in {_PATIENCE:g} s"
    except httpx.HTTPError as exc:
        reasons[instance.name] = f"{url} did not answer ({exc})"
    except ValueError as exc:
        reasons[instance.name] = f"{url} is not in Prometheus's format ({exc})"
    return None


def _notes(windows: Mapping[str, Window], reasons: Mapping[str, str], plan: Plan | None) -> list[str]:
    notes = []
    for name, window in windows.items():
        if not window.looks:
            notes.append(f"{name} told nothing: {reasons[name]}")
        elif window.missed:
            notes.append(
                f"{name} did not answer {window.missed} of {window.missed + len(window.looks)} looks: {reasons[name]}"
            )
        if window.restarts:
            notes.append(f"{name} began to count anew in the window (a restart): what it counted just before is lost")
    ended, probes = requests([*windows.values()]), canaries([*windows.values()])
    if ended and probes and probes / ended > _MANY_CANARIES:
        notes.append(f"{probes:g} canaries of the proxy are among what engines counted, beside {ended:g} requests")
    if plan is None:
        notes.append("the run directory's plan cannot be read: what is configured is unknown")
    return notes
