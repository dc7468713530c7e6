"""Contract shape: which engine instances exist and how KV moves between them.

Written by the launcher, read by the proxy; standard library only, so that both can be tested without the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

_STRICT = {"extra": "forbid"}


class Role(StrEnum):
    """What an instance does for a request."""

    PREFILL = "prefill"
    """Computes the KV cache of a prompt and hands it over (vLLM's ``kv_producer``)."""
    DECODE = "decode"
    """Takes over a KV cache and generates (vLLM's ``kv_consumer``); can also serve a whole request by itself."""
    AGGREGATED = "aggregated"
    """An ordinary engine that does both."""


class ConnectorKind(StrEnum):
    """The protocol by which a prefill instance hands its KV cache to a decode instance."""

    NIXL_PULL = "nixl-pull"
    """Decode reads from prefill; the legs run one after the other (vLLM's ``NixlConnector``)."""
    NIXL_PUSH = "nixl-push"
    """Prefill writes into decode; the legs run side by side (vLLM's ``NixlPushConnector``)."""
    SHARED_STORAGE = "shared-storage"
    """Prefill writes files that decode reads, one leg after the other (vLLM's ``ExampleConnector``)."""
    MOONCAKE = "mooncake"
    """Prefill writes into decode; the legs run side by side (vLLM's ``MooncakeConnector``)."""
    LMCACHE = "lmcache"
    """Both use one LMCache store, one leg after the other (vLLM's ``LMCacheConnectorV1``)."""
    MULTI = "multi"
    """As ``nixl-pull``, and prefill writes files besides (vLLM's ``MultiConnector`` over two of the above)."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One engine server."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    name: str
    """Unique in the topology, e.g. ``prefill-0``."""
    role: Role
    url: str
    """Base address without a trailing slash, e.g. ``http://127.0.0.1:8100``."""
    pool: str = ""
    """Whose requests it serves, see :mod:`proxy.pools`; empty for the main pool. KV stays within one."""
    bootstrap: str | None = None
    """The same of the server by which Mooncake's prefill instances tell of themselves, e.g. ``http://127.0.0.1:8998``."""
    fingerprint: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What is known of it that its partners must share, by the names of :mod:`proxy.agreement`."""


@dataclass(frozen=True, slots=True)
class Topology:
    """All instances that the proxy may use."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    instances: tuple[Instance, ...]
    connector: ConnectorKind | None = None
    """How prefill and decode meet; ``None`` when all instances are aggregated."""

    def with_role(self, role: Role) -> tuple[Instance, ...]:
        """The instances of one role, in the order of the topology."""
        return tuple(instance for instance in self.instances if instance.role is role)
