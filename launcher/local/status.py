"""What runs in a run directory, and whether it answers now."""

import asyncio
from dataclasses import dataclass

import httpx
from pydantic import TypeAdapter, ValidationError

from launcher.loading import Loading
from launcher.local.deployment import PROXY, InstanceState, State
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
    drained: bool = False
    """The proxy sends it nothing new."""
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
    draining: bool = False


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is of interest here of the answer to ``/ready``; without a key the proxy tells of no instance."""

    instances: tuple[_Seen, ...] = ()
    draining: bool = False

    @property
    def reason(self) -> str:
        """Why no request would be answered, if so."""
        if self.draining:
            return "it is being stopped"
        away = [each.name for each in self.instances if each.draining or not each.healthy]
        return f"none that it could send requests to ({', '.join(away)})" if away else ""


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
    ready = next((_told(by_name[each.name]) for each in deployment.instances if each.role == PROXY), _Ready())
    reports = [_report(each, by_name[each.name], ready) for each in deployment.instances]
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


def _told(answer: httpx.Response | str) -> _Ready:
    """How the proxy, which answered so, sees the engines; empty when it does not say."""
    try:
        return _Ready() if isinstance(answer, str) else _READY.validate_json(answer.content)
    except ValidationError:
        return _Ready()


def _health(instance: InstanceState, answer: httpx.Response | str, ready: _Ready) -> str:
    if isinstance(answer, str):
        return answer
    if answer.status_code != httpx.codes.OK:
        why = ready.reason if instance.role == PROXY else ""
        return f"HTTP {answer.status_code}" + (f": {why}" if why else "")
    unhealthy = (each.reason for each in ready.instances if each.name == instance.name and not each.healthy)
    return next(filter(None, unhealthy), "ok")


def _report(instance: InstanceState, answer: httpx.Response | str, ready: _Ready) -> InstanceReport:
    return InstanceReport(
        name=instance.name,
        role=instance.role,
        url=instance.url,
        port=httpx.URL(instance.url).port or 80,
        state=instance.state,
        health=_health(instance, answer, ready),
        pid=instance.pid,
        started_at=instance.started_at,
        restarts=instance.restarts,
        reason=instance.reason,
        drained=any(each.draining for each in ready.instances if each.name == instance.name),
        waits_for=instance.waits_for,
        loading=instance.loading,
        start_budget=instance.start_budget,
    )


def _was_killed(instances: tuple[InstanceState, ...]) -> bool:
    return any(instance.state is not State.STOPPED and instance.pid for instance in instances)
