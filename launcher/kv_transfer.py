"""Decision: what each KV connector needs on an engine's command line and in its environment."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from launcher.profile import Device, KVTransfer
from proxy.topology import ConnectorKind, Role

_ENGINE_ROLE = {Role.PREFILL: "kv_producer", Role.DECODE: "kv_consumer"}


@dataclass(frozen=True, slots=True)
class ConnectorSetup:
    """One engine's share of a connector."""

    config: str
    """The JSON of ``--kv-transfer-config``."""
    env: Mapping[str, str]


def setup(settings: KVTransfer, role: Role, device: Device, host: str, side_channel_port: int) -> ConnectorSetup:
    """What an engine in ``role`` needs for the connector that ``settings`` choose."""
    return CONNECTORS[settings.connector](settings, role, device, host, side_channel_port)


def _nixl_pull(settings: KVTransfer, role: Role, device: Device, host: str, side_channel_port: int) -> ConnectorSetup:
    extra: dict[str, object] = {"kv_lease_duration": settings.lease}
    env = {"VLLM_NIXL_SIDE_CHANNEL_HOST": host, "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side_channel_port)}
    if device is Device.CPU:
        extra["num_threads"] = 1
        # Both ends are on this machine: shared memory, and TCP on the loopback for control. On a laptop UCX would
        # otherwise pick whichever network interface it finds.
        env |= {"UCX_TLS": "sm,tcp", "UCX_NET_DEVICES": "lo"}
    config = {
        "kv_connector": "NixlConnector",
        "kv_role": _ENGINE_ROLE[role],
        "kv_buffer_device": device.value,
        "kv_load_failure_policy": settings.load_failure_policy.value,
        "kv_connector_extra_config": extra,
    }
    return ConnectorSetup(json.dumps(config), env)


CONNECTORS: Mapping[ConnectorKind, Callable[[KVTransfer, Role, Device, str, int], ConnectorSetup]] = {
    ConnectorKind.NIXL_PULL: _nixl_pull,
}
