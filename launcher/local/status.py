"""What runs in a run directory, and whether it answers now."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from pydantic import TypeAdapter, ValidationError

from launcher.local.deployment import PROXY, InstanceState, Loading, State
from launcher.local.run_directory import RunDirectory

_PATIENCE = 3.0
"""Seconds an instance has to answer."""


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """One instance, its recorded state and its health now."""

    name: str
    role: str
    url: str
    port: int
    state: State
    health: str
    """``ok``, or what came instead."""
    pid: int | None
    started_at: float | None
    """Seconds since the epoch."""
    restarts: int
    reason: str | None
    waits_for: str | None = None
    """Who starts on the same device and has to be ready first."""
    loading: Loading | None = None
    """How far its start is."""
    start_budget: float = 0.0
    """Seconds from ``started_at`` until it must be ready."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A deployment now; without a launcher nothing runs."""

    healthy: bool
    """Everything runs, is ready and answers."""
    note: str
    profile: str | None = None
    address: str | None = None
    model: str | None = None
    launcher_pid: int | None = None
    instances: tuple[InstanceReport, ...] = ()


_REPORT = TypeAdapter(StatusReport)


@dataclass(frozen=True, slots=True)
class _Seen:
    """An engine as the proxy sees it: also one that answers ``/health`` and stands still."""

    name: str
    healthy: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is of interest here of the answer to ``/ready``; without a key the proxy tells of no instance."""

    instances: tuple[_Seen, ...] = ()


_READY = TypeAdapter(_Ready)


def report_json(report: StatusReport) -> str:
    """The report as indented JSON."""
    return _REPORT.dump_json(report, indent=2).decode()


async def gather(directory: RunDirectory) -> StatusReport:
    """Read the state and ask every instance."""
    launcher, deployment = directory.holder(), directory.read_state()
    if launcher is None:
        ended = " (the last launcher was killed)" if deployment and _was_killed(deployment.instances) else ""
        return StatusReport(healthy=False, note=f"nothing runs in {directory.path}{ended}")
    if deployment is None or deployment.launcher_pid != launcher:
        return StatusReport(healthy=False, note=f"launcher {launcher} is about to start", launcher_pid=launcher)
    # Certificates are for the names that clients use; what is asked here is on this machine.
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=_PATIENCE) as client:
        answers = await asyncio.gather(*(_ask(client, each) for each in deployment.instances))
    by_name = {each.name: answer for each, answer in zip(deployment.instances, answers, strict=True)}
    seen = next((_unhealthy(by_name[each.name]) for each in deployment.instances if each.role == PROXY), {})
    reports = [_report(each, _health(by_name[each.name]), seen) for each in deployment.instances]
    return StatusReport(
        healthy=deployment.ready and all(report.health == "ok" and report.state is State.READY for report in reports),
        note="",
        profile=deployment.profile,
        address=deployment.address,
        model=deployment.model,
        launcher_pid=launcher,
        instances=tuple(reports),
    )


async def _ask(client: httpx.AsyncClient, instance: InstanceState) -> httpx.Response | str:
    """What it answers, or why there is no answer."""
    if not instance.pid:
        return "down"
    try:
        return await client.get(instance.url + ("/ready" if instance.role == PROXY else "/health"))
    except httpx.TimeoutException:
        return f"no answer in {_PATIENCE:.0f} s"
    except httpx.TransportError:
        return "does not listen" if instance.state is not State.READY else "unreachable"


def _unhealthy(answer: httpx.Response | str) -> Mapping[str, str]:
    """Why the proxy, which answered so, sends engines nothing, by their names; empty when it does not say."""
    if isinstance(answer, str):
        return {}
    try:
        ready = _READY.validate_json(answer.content)
    except ValidationError:
        return {}
    return {each.name: each.reason for each in ready.instances if not each.healthy and each.reason}


def _health(answer: httpx.Response | str) -> str:
    if isinstance(answer, str):
        return answer
    return "ok" if answer.status_code == httpx.codes.OK else f"HTTP {answer.status_code}"


def _report(instance: InstanceState, health: str, unhealthy: Mapping[str, str]) -> InstanceReport:
    return InstanceReport(
        name=instance.name,
        role=instance.role,
        url=instance.url,
        port=httpx.URL(instance.url).port or 80,
        state=instance.state,
        health=unhealthy.get(instance.name, health) if health == "ok" else health,
        pid=instance.pid,
        started_at=instance.started_at,
        restarts=instance.restarts,
        reason=instance.reason,
        waits_for=instance.waits_for,
        loading=instance.loading,
        start_budget=instance.start_budget,
    )


def _was_killed(instances: tuple[InstanceState, ...]) -> bool:
    return any(instance.state is not State.STOPPED and instance.pid for instance in instances)
