"""Decision: plan -> unit files. One service for each instance, and a target for all of them; nothing is looked up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.local.crashes import CALM, FIRST_PAUSE, MOST_CRASHES
from launcher.local.recipes import ENGINE_GRACE, PROXY_START_BUDGET, proxy_grace
from launcher.local.start_order import ahead_of
from launcher.plan import EngineInstance, Plan, PlannedFile, ProxyInstance
from launcher.profile import Device
from launcher.systemd.quoting import assignment, command, description, rest_of_line, unit_name

SECRETS = "secrets.env"
"""In the folder of the units: the variables that the profile's ``secrets`` name; written by whoever operates this."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MARGIN = 45.0
"""Seconds that a start may take beyond its budget, for looking at devices before and at threads after."""
_OPEN_FILES = 65536
_NETWORK = "network-online.target"


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
    services = {name: unit_name("duet", plan.profile, name, suffix="service") for name in plan.instance_names()}
    target = unit_name("duet", plan.profile, suffix="target")
    form = _Form(plan, folder, user, target, services)
    units = {
        **{services[engine.name]: form.engine(engine) for engine in plan.engines},
        services[plan.proxy.name]: form.proxy(plan.proxy),
        target: form.all_of_them(),
    }
    references = [each for engine in plan.engines for each in engine.secrets.values()]
    return Rendering(
        target,
        tuple(services.values()),
        (*(PlannedFile(str(folder / name), text) for name, text in units.items()), *plan.files),
        tuple(sorted({each["env"] for each in references if "env" in each})),
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """What the units of one plan have in common."""

    plan: Plan
    folder: Path
    user: str | None
    target: str
    services: Mapping[str, str]
    """Instance -> unit."""

    def engine(self, engine: EngineInstance) -> str:
        budget = self.plan.startup_timeout
        devices = {each.name: each.devices for each in self.plan.engines}
        ahead = ahead_of(engine.name, [*devices], devices)
        settle = ["--settle"] if self.plan.device is Device.CPU else []
        lines = [
            *([f"ExecStartPre={self._hook('free', *sorted(engine.devices))}"] if engine.devices else []),
            f"ExecStart={self._program(engine)}",
            f"ExecStartPost={self._hook('ready', f'{engine.url}/health', f'--within={budget}', *settle)}",
            *_environment(engine.argv[0], engine.env),
            *self._secrets(engine),
        ]
        after = [self.services[each.name] for each in ahead]
        return self._service(engine.name, lines, after=after, start_within=budget, stop_within=ENGINE_GRACE)

    def proxy(self, proxy: ProxyInstance) -> str:
        lines = [
            f"ExecStart={command(proxy.argv)}",
            f"ExecStartPost={self._hook('ready', f'{proxy.url}/health', f'--within={PROXY_START_BUDGET:.0f}')}",
            *_environment(proxy.argv[0], proxy.env),
        ]
        return self._service(
            proxy.name,
            lines,
            after=[self.services[engine.name] for engine in self.plan.engines],
            start_within=PROXY_START_BUDGET,
            stop_within=proxy_grace(self.plan),
        )

    def all_of_them(self) -> str:
        about = f"Duet {self.plan.profile}: {self.plan.served_name} at {self.plan.proxy.url}"
        units = [*self.services.values()]
        unit = [f"Description={description(about)}", *(f"Wants={each}" for each in units), f"After={' '.join(units)}"]
        return _sections(Unit=unit, Install=[f"WantedBy={'multi-user' if self.user else 'default'}.target"])

    def _service(
        self, name: str, lines: Sequence[str], *, after: Sequence[str], start_within: float, stop_within: float
    ) -> str:
        network = [_NETWORK] if self.user else []
        after = [*network, *after]
        unit = [
            f"Description={description(f'Duet {self.plan.profile}: {name}')}",
            f"PartOf={self.target}",
            *(f"Wants={each}" for each in network),
            *([f"After={' '.join(after)}"] if after else []),
            # However long the starts take, so many without some service between them are a crash loop.
            f"StartLimitIntervalSec={CALM + MOST_CRASHES * start_within:.0f}",
            f"StartLimitBurst={MOST_CRASHES}",
        ]
        service = [
            "Type=exec",
            *([f"User={rest_of_line(self.user)}"] if self.user else []),
            *lines,
            f"TimeoutStartSec={start_within + _MARGIN:.0f}",
            f"TimeoutStopSec={stop_within:.0f}",
            "Restart=always",
            f"RestartSec={FIRST_PAUSE:.0f}",
            "KillMode=control-group",
            "OOMPolicy=stop",
            f"LimitNOFILE={_OPEN_FILES}",
        ]
        return _sections(Unit=unit, Service=service)

    def _program(self, engine: EngineInstance) -> str:
        if not engine.secrets:
            return command(engine.argv)
        sources = [
            f"{name}=env:{each['env']}" if "env" in each else f"{name}=credential"
            for name, each in engine.secrets.items()
        ]
        return self._hook("run", *sources, "--", *engine.argv)

    def _secrets(self, engine: EngineInstance) -> Iterator[str]:
        for name, each in engine.secrets.items():
            if "file" in each:
                yield f"LoadCredential={name}:{rest_of_line(each['file'])}"
        if any("env" in each for each in engine.secrets.values()):
            yield f"EnvironmentFile={rest_of_line(str(self.folder / SECRETS))}"

    def _hook(self, *arguments: str) -> str:
        python = self.plan.proxy.argv[0]  # that which has this package
        return command([python, "-P", "-m", "launcher.systemd.hooks", *arguments])


def _environment(program: str, env: Mapping[str, str]) -> Iterator[str]:
    """A manager gives its services next to nothing; engines look for compilers, and for tools beside their Python."""
    path = {"PATH": f"{Path(program).parent}:{_SYSTEM_PATH}"}
    return (f"Environment={assignment(name, value)}" for name, value in sorted({**path, **env}.items()))


def _sections(**lines: Sequence[str]) -> str:
    return "\n".join("".join(f"{line}\n" for line in (f"[{name}]", *each)) for name, each in lines.items())
