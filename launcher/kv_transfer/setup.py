"""Shapes: what a KV connector is told of an engine, and what it needs there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from launcher.profile import Device, RoleSettings
from launcher.site import Site
from proxy.topology import Role

_ENGINE_ROLE = {Role.PREFILL: "kv_producer", Role.DECODE: "kv_consumer"}


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine of a pair."""

    name: str
    role: Role
    settings: RoleSettings
    device: Device
    site: Site
    port: int | None
    """The first of those it was given for its connector."""
    run_directory: Path
    pool: str = ""
    """Whose KV caches it may have, and no other's."""

    @property
    def host(self) -> str:
        """By which its partners reach it."""
        return self.site.reach

    @property
    def kv_role(self) -> str:
        """In vLLM's words."""
        return _ENGINE_ROLE[self.role]


@dataclass(frozen=True, slots=True)
class ConnectorSetup:
    """One engine's share of a connector."""

    config: Mapping[str, JsonValue]
    """``--kv-transfer-config``."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What the plan has settled."""
    env_defaults: Mapping[str, str] = field(default_factory=dict)
    """What a profile may say otherwise."""
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    """More options of vLLM, by name."""

    def all_options(self) -> dict[str, JsonValue]:
        """Of vLLM's command line, by name."""
        return {**self.options, "kv-transfer-config": dict(self.config)}
