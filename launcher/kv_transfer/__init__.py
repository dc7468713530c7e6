"""Decision: what each KV connector needs on an engine's command line, in its environment and of its ports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from launcher.kv_transfer import nixl, stores
from launcher.kv_transfer.mooncake import mooncake
from launcher.kv_transfer.setup import ConnectorSetup, Engine
from launcher.profile import KVTransfer
from proxy.topology import ConnectorKind, Role

_BOTH = frozenset({Role.PREFILL, Role.DECODE})


def _one(_: Engine) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class Connector:
    """One of vLLM's."""

    setup: Callable[[KVTransfer, Engine], ConnectorSetup]
    ports: str | None = None
    """The key below ``ports`` in the profile where its ports begin; ``None``: it listens nowhere."""
    listeners: frozenset[Role] = _BOTH
    width: Callable[[Engine], int] = _one
    """How many ports in a row a listener needs."""
    bootstraps: bool = False
    """Whether the proxy can ask over HTTP at the port."""


CONNECTORS: Mapping[ConnectorKind, Connector] = {
    ConnectorKind.NIXL_PULL: Connector(nixl.pull, "side_channel", width=nixl.width),
    ConnectorKind.NIXL_PUSH: Connector(nixl.push, "side_channel", width=nixl.width),
    ConnectorKind.SHARED_STORAGE: Connector(stores.shared_storage),
    ConnectorKind.MOONCAKE: Connector(mooncake, "bootstrap", frozenset({Role.PREFILL}), bootstraps=True),
    ConnectorKind.LMCACHE: Connector(stores.lmcache),
    ConnectorKind.MULTI: Connector(stores.multi, "side_channel", width=nixl.width),
}

__all__ = ["CONNECTORS", "Connector", "ConnectorSetup", "Engine"]
