"""Shape: exactly what will run. JSON-able; the same profile on the same machine gives the same bytes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from launcher.profile import Device
from proxy.topology import Role


@dataclass(frozen=True, slots=True)
class EngineInstance:
    """One vLLM server."""

    name: str
    """``<role>-<number>``, unique in the plan."""
    role: Role
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Added to the launcher's own environment."""
    host: str
    port: int
    side_channel_port: int | None
    """Where the connector's handshake listens; ``None`` without a connector."""
    gpus: tuple[int, ...]
    """CUDA device indices; empty on a CPU."""
    kv_cache_memory: int | None
    """Bytes; ``None``: the engine decides."""

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
    drain: float
    """Seconds that running requests may need to finish when it is stopped."""

    @property
    def url(self) -> str:
        """Base address without a trailing slash, as a client on this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "": "127.0.0.1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


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
    checkpoint_scheme: str | None
    """How the checkpoint is said to be quantized."""
    engines: tuple[EngineInstance, ...]
    proxy: ProxyInstance
    files: tuple[PlannedFile, ...]
    startup_timeout: int
    """Seconds until everything must be ready."""

    def instance_names(self) -> tuple[str, ...]:
        """All processes, in the order they start."""
        return (*(engine.name for engine in self.engines), self.proxy.name)


def to_json(plan: Plan) -> str:
    """The plan as stable, indented JSON with a final newline."""
    return json.dumps(asdict(plan), indent=2) + "\n"
