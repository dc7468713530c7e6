"""The KV protocols: what prefill and decode are told, so that a KV cache moves from one to the other.

A hand-off turns bodies into bodies and does no I/O.
"""

from dataclasses import replace

from proxy.handoff.mooncake import Mooncake
from proxy.handoff.nixl_pull import NIXL, NixlPull
from proxy.handoff.nixl_push import NixlPush
from proxy.handoff.protocol import Handoff
from proxy.handoff.stored import ALONE, LMCACHE, SHARED_STORAGE
from proxy.topology import ConnectorKind

HANDOFFS: dict[ConnectorKind, Handoff] = {
    ConnectorKind.NIXL_PULL: NixlPull(),
    ConnectorKind.NIXL_PUSH: NixlPush(),
    ConnectorKind.SHARED_STORAGE: SHARED_STORAGE,
    ConnectorKind.MOONCAKE: Mooncake(),
    ConnectorKind.LMCACHE: LMCACHE,
    # Decode takes over from the first connector that has KV, and NIXL is asked first.
    ConnectorKind.MULTI: NixlPull(replace(NIXL, reference=ALONE)),
}

__all__ = ["HANDOFFS", "Handoff"]
