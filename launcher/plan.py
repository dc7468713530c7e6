"""Shape: exactly what will run. JSON-able; the same profile on the same machine gives the same bytes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from launcher.profile import Device
from proxy.topology import ConnectorKind, Role


def instance_name(role: Role, pool: str, number: int) -> str:
    """``<role>-<number>`` in the main pool, else ``<role>-<pool>-<number>``."""
    return "-".join(filter(None, (role.value, pool, str(number))))


@dataclass(frozen=True, slots=True)
class EngineInstance:
    """One vLLM server."""

    name: str
    """As :func:`instance_name` has it, unique in the plan."""
    role: Role
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Added to the launcher's own environment."""
    host: str
    port: int
    side_channel_port: int | None
    """Where its KV connector listens, from this port on; ``None`` if it does not."""
    devices: tuple[str, ...]
    """Its GPUs, by UUID where that is known and else by index; empty on a CPU. Two engines may share some."""
    device_type: str | None
    """The kind of GPU, where the profile or this machine tells."""
    device_memory: int | None
    """Bytes of one GPU, where the profile or this machine tells."""
    secrets: Mapping[str, Mapping[str, str]]
    """Variables whose text is elsewhere: ``{"env": name}`` of the launcher's own, or ``{"file": path}``."""
    kv_cache_memory: int | None
    """Bytes; ``None``: the engine decides."""
    pool: str = ""
    """As :attr:`proxy.topology.Instance.pool`."""

    @property
    def url(self) -> str:
        """Base address without a trailing slash."""
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProxyInstance:
    """The proxy in front of the engines."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    host: str
    port: int
    tls: bool
    """Whether clients speak HTTPS."""
    admin: tuple[str, int] | None
    """Host and port where it tells of itself, when that is another address than that of clients."""
    drain: float
    """Seconds that requests may need to finish when it is stopped."""
    tracing: bool
    """Whether it sends spans to a collector."""

    @property
    def url(self) -> str:
        """Base address without a trailing slash, as a client on this machine reaches it."""
        return _url("https" if self.tls else "http", self.host, self.port)

    @property
    def operators_url(self) -> str:
        """Base address of ``/ready``, as this machine reaches it."""
        return self.url if self.admin is None else _url("http", *self.admin)


def _url(scheme: str, host: str, port: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "": "127.0.0.1"}.get(host, host)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that is written before anything starts."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment, settled to the last port."""

    profile: str
    """The name it was made from."""
    device: Device
    model: str
    """What engines are given as the model: an absolute folder or a hub id."""
    served_name: str
    connector: ConnectorKind | None
    """How prefill and decode meet."""
    checkpoint_scheme: str | None
    """How the checkpoint is said to be quantized."""
    engines: tuple[EngineInstance, ...]
    proxy: ProxyInstance
    files: tuple[PlannedFile, ...]
    """The proxy's configuration, and what it tells people of the deployment."""
    startup_timeout: int
    """Seconds until everything must be ready."""
    kv_lease: int
    """Seconds that prefill keeps KV for decode; 0 without prefill."""
    objectives: Mapping[str, float | None]
    """``ttft`` and ``tpot`` in seconds, where the profile names them."""
    scaling: Mapping[Role, tuple[int, int]]
    """Fewest and most instances of a role that a cluster may run, where the profile says it."""

    def instance_names(self) -> tuple[str, ...]:
        """All processes, in the order they start."""
        return (*(engine.name for engine in self.engines), self.proxy.name)


def with_argv(plan: Plan, name: str, argv: Sequence[str]) -> Plan:
    """The plan with another command line of one engine."""
    engines = (replace(engine, argv=tuple(argv)) if engine.name == name else engine for engine in plan.engines)
    return replace(plan, engines=tuple(engines))


def to_json(plan: Plan) -> str:
    """The plan as stable, indented JSON with a final newline."""
    return json.dumps(asdict(plan), indent=2) + "\n"
