"""How the KV cache gets from prefill to decode."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from launcher.profile.shape import Shape
from proxy.topology import ConnectorKind


class LoadFailurePolicy(StrEnum):
    """What decode's engine does when it cannot read a KV cache."""

    FAIL = "fail"
    RECOMPUTE = "recompute"


class SharedStorage(Shape):
    """Of the connectors `shared-storage` and `multi`."""

    path: Path | None = None
    """The folder of the KV files, which nobody deletes; `~` is expanded; default: `kv` in the run directory."""


class LMCache(Shape):
    """Of the connector `lmcache`."""

    remote_url: str
    """The store that all engines use, e.g. `redis://127.0.0.1:6379` or `lm://127.0.0.1:65432`."""


class Mooncake(Shape):
    """Of the connector `mooncake`."""

    protocol: Literal["rdma", "tcp"] = "rdma"
    """What KV caches travel by."""
    device_name: str = ""
    """RDMA devices, separated by commas; empty: Mooncake chooses."""


_NAMES_IN_THE_ENGINE = {
    "NixlConnector": "nixl-pull",
    "NixlPullConnector": "nixl-pull",
    "NixlPushConnector": "nixl-push",
    "ExampleConnector": "shared-storage",
    "SharedStorageConnector": "shared-storage (vLLM now calls it ExampleConnector)",
    "MooncakeConnector": "mooncake",
    "LMCacheConnectorV1": "lmcache",
    "MultiConnector": "multi",
    "PyNcclConnector": "nixl-pull (vLLM has no PyNcclConnector any more)",
    "P2pNcclConnector": "nixl-pull (vLLM has no P2pNcclConnector any more)",
}


def _by_our_name(given: object) -> object:
    if isinstance(given, str) and (ours := _NAMES_IN_THE_ENGINE.get(given)):
        raise ValueError(f"write {ours}")
    return given


_NIXL = {ConnectorKind.NIXL_PULL, ConnectorKind.NIXL_PUSH, ConnectorKind.MULTI}
FILE_CONNECTORS = {ConnectorKind.SHARED_STORAGE, ConnectorKind.MULTI}
_BELONGS_TO = {
    "lease": _NIXL,
    "shared_storage": FILE_CONNECTORS,
    "lmcache": {ConnectorKind.LMCACHE},
    "mooncake": {ConnectorKind.MOONCAKE},
}


class KVTransfer(Shape):
    """How the KV cache gets from prefill to decode."""

    connector: Annotated[ConnectorKind, BeforeValidator(_by_our_name)] = ConnectorKind.NIXL_PULL
    """What moves it; see docs/connectors.md."""
    load_failure_policy: LoadFailurePolicy = LoadFailurePolicy.FAIL
    """What decode does when it cannot read a KV cache: `fail` the request, or `recompute` the prompt. Always written
    to the engine, since its default changed between versions."""
    lease: Annotated[int, Field(ge=5)] = 30
    """Seconds that prefill keeps a KV cache for decode; only with NIXL."""
    shared_storage: SharedStorage | None = None
    """Only with `shared-storage` and `multi`."""
    lmcache: LMCache | None = None
    """Only with `lmcache`, which needs it."""
    mooncake: Mooncake | None = None
    """Only with `mooncake`."""

    @model_validator(mode="after")
    def _fits_connector(self) -> Self:
        for key, owners in _BELONGS_TO.items():
            if key in self.model_fields_set and self.connector not in owners:
                raise ValueError(f"{key} belongs to {' or '.join(sorted(owners))}, not to {self.connector}: remove it")
        if self.connector is ConnectorKind.LMCACHE and self.lmcache is None:
            raise ValueError("connector lmcache needs lmcache.remote_url: the store that all engines use")
        return self
