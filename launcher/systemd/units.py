"""Decision: plan -> unit files. One service for each instance, and a target for all of them; nothing is looked up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.local.crashes import CALM, FIRST_PAUSE, MOST_CRASHES
from launcher.local.recipes import ENGINE_GRACE, PROXY_START_BUDGET, proxy_grace
from launcher.local.start_order import ahead_of
from launcher.plan import EngineInstance, Plan, PlannedFile
from launcher.profile import Device
from launcher.systemd.quoting import assignment, command, description, rest_of_line, unit_name

SECRETS = "secrets.env"
"""In the folder of the units: what ``secrets.*.env`` names, written by whoever operates this."""
_HOOKS = ("-P", "-m", "launcher.systemd.hooks")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MARGIN = 15
"""Seconds that a start may take beyond its budget, for looking at devices before and threads after."""
_OPEN_FILES = 65536


@dataclass(frozen=True, slots=True)
class Rendering:
    """What is to be written, and how it is used."""

    target: str
    """The unit that stands for all."""
    services: tuple[str, ...]
    files: tuple[PlannedFile, ...]
    """Units, and what the plan itself wants to have written."""
    secret_variables: tuple[str, ...]
    """That have to be in the file :data:`SECRETS`."""


def render(plan: Plan, folder: Path, *, user: str | None = None) -> Rendering:
    """The units of a plan whose files lie in ``folder``, where they stay.

    ``user``: as whom the system's manager runs them; ``None`` for the units of a user's own manager. Raises
    :class:`launcher.errors.PlanError` for what systemd cannot take.
    """
    base = f"duet-{plan.profile}"
    target = unit_name(base, suffix="target")
    names = {each: unit_name(base, each, suffix="service") for each in plan.instance_names()}
    python = plan.proxy.argv[0]
    devices = {engine.name: engine.devices for engine in plan.engines}
    order = [engine.name for engine in plan.engines]
    units = {
        names[engine.name]: _engine(
            plan, engine, folder, target, python, user, [names[each.name] for each in ahead_of(engine.name, order, devices)]
        )
        for engine in plan.engines
    }
    units[names[plan.proxy.name]] = _proxy(plan, target, python, user, [names[engine.name] for engine in plan.engines])
    units[target] = _target(plan, list(names.values()), user)
    return Rendering(
        target,
        tuple(names.values()),
        (*(PlannedFile(str(folder / name), text) for name, text in units.items()), *plan.files),
        tuple(sorted({each["env"] for engine in plan.engines for each in engine.secrets.values() if "env" in each})),
    )


def _engine(
    plan: Plan, engine: EngineInstance, folder: Path, target: str, python: str, user: str | None, after: Sequence[str]
) -> str:
    start = list(engine.argv)
    credentials = [variable for variable, each in engine.secrets.items() if "file" in each]
    if engine.secrets:
        sources = [f"{name}={f'env:{each["env"]}' if 'env' in each else 'credential'}" for name, each in engine.secrets.items()]
        start = [python, *_HOOKS, "run", *sources, "--", *engine.argv]
    ready = [python, *_HOOKS, "ready", f"{engine.url}/health", f"--within={plan.startup_timeout}"]
    service: list[str] = [
        *([f"ExecStartPre={command([python, *_HOOKS, 'free', *sorted(engine.devices)])}"] if engine.devices else []),
        f"ExecStart={command(start)}",
        f"ExecStartPost={command([*ready, *(['--settle'] if plan.device is Device.CPU else [])])}",
        *_environment(engine.argv[0], engine.env),
        *(f"LoadCredential={name}:{rest_of_line(engine.secrets[name]['file'])}" for name in credentials),
    ]
    if len(credentials) < len(engine.secrets):
        service.append(f"EnvironmentFile={rest_of_line(str(folder / SECRETS))}")
    return _service(
        plan,
        engine.name,
        target,
        user,
        service,
        after=after,
        start_within=plan.startup_timeout,
        stop_within=ENGINE_GRACE,
    )


def _proxy(plan: Plan, target: str, python: str, user: str | None, engines: Sequence[str]) -> str:
    proxy = plan.proxy
    ready = [python, *_HOOKS, "ready", f"{proxy.url}/health", f"--within={PROXY_START_BUDGET:.0f}"]
    service = [
        f"ExecStart={command(proxy.argv)}",
        f"ExecStartPost={command(ready)}",
        *_environment(proxy.argv[0], proxy.env),
    ]
    return _service(
        plan,
        proxy.name,
        target,
        user,
        service,
        after=engines,
        start_within=PROXY_START_BUDGET,
        stop_within=proxy_grace(plan),
    )


def _service(
    plan: Plan,
    name: str,
    target: str,
    user: str | None,
    lines: Iterable[str],
    *,
    after: Sequence[str],
    start_within: float,
    stop_within: float,
) -> str:
    window = CALM + MOST_CRASHES * start_within  # however long the starts take
    return _text(
        "Unit",
        f"Description={description(f'Duet {plan.profile}: {name}')}",
        f"PartOf={target}",
        *([f"After={' '.join(after)}"] if after else []),
        f"StartLimitIntervalSec={window:.0f}",
        f"StartLimitBurst={MOST_CRASHES}",
    ) + _text(
        "Service",
        "Type=exec",
        *([f"User={rest_of_line(user)}"] if user else []),
        *lines,
        f"TimeoutStartSec={start_within + _MARGIN:.0f}",
        f"TimeoutStopSec={stop_within:.0f}",
        "Restart=always",
        f"RestartSec={FIRST_PAUSE:.0f}",
        "KillMode=control-group",
        "OOMPolicy=stop",
        f"LimitNOFILE={_OPEN_FILES}",
        last=True,
    )


def _target(plan: Plan, services: Sequence[str], user: str | None) -> str:
    return _text(
        "Unit",
        f"Description={description(f'Duet {plan.profile}: {plan.served_name} at {plan.proxy.url}')}",
        *(f"Wants={service}" for service in services),
        f"After={' '.join(services)}",
    ) + _text("Install", f"WantedBy={'multi-user' if user else 'default'}.target", last=True)


def _environment(program: str, env: Mapping[str, str]) -> Iterator[str]:
    """A manager gives its services next to nothing; engines look for compilers, and for tools beside their Python."""
    path = {"PATH": f"{Path(program).parent}:{_SYSTEM_PATH}"}
    return (f"Environment={assignment(name, value)}" for name, value in sorted({**path, **env}.items()))


def _text(section: str, *lines: str, last: bool = False) -> str:
    return "".join(f"{line}\n" for line in (f"[{section}]", *lines)) + ("" if last else "\n")
