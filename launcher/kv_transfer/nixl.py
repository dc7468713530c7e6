"""NIXL: decode reads from prefill (pull), or prefill writes into decode (push)."""

from collections.abc import Mapping

from pydantic import JsonValue

from launcher.kv_transfer.setup import ConnectorSetup, Engine
from launcher.profile import Device, KVTransfer


def width(engine: Engine) -> int:
    """Each data-parallel rank listens on a port of its own, one after the other."""
    return engine.settings.data_parallel


def pull(settings: KVTransfer, engine: Engine) -> ConnectorSetup:
    """``NixlConnector``."""
    return ConnectorSetup({"kv_connector": "NixlConnector", **_config(settings, engine)}, _env(engine), _lines(engine))


def push(settings: KVTransfer, engine: Engine) -> ConnectorSetup:
    """``NixlPushConnector``. Engines get no fixed names: see the proxy's hand-off."""
    config: dict[str, JsonValue] = {"kv_connector": "NixlPushConnector", **_config(settings, engine)}
    return ConnectorSetup(config, _env(engine), _lines(engine))


def _config(settings: KVTransfer, engine: Engine) -> dict[str, JsonValue]:
    extra: dict[str, JsonValue] = {"kv_lease_duration": settings.lease}
    if engine.device is Device.CPU:
        extra["num_threads"] = 1
    return {
        "kv_role": engine.kv_role,
        "kv_buffer_device": engine.device.value,
        "kv_load_failure_policy": settings.load_failure_policy.value,
        "kv_connector_extra_config": extra,
    }


def _env(engine: Engine) -> Mapping[str, str]:
    return {"VLLM_NIXL_SIDE_CHANNEL_HOST": engine.host, "VLLM_NIXL_SIDE_CHANNEL_PORT": str(engine.port)}


def _lines(engine: Engine) -> Mapping[str, str]:
    """Left alone, UCX would pick whichever network interface it finds on a laptop.

    On one machine: shared memory, and TCP on the loopback for control. Between pods: TCP. GPUs' lines are UCX's choice.
    """
    if engine.device is not Device.CPU:
        return {}
    return {"UCX_TLS": "sm,tcp", "UCX_NET_DEVICES": "lo"} if engine.site.one_machine else {"UCX_TLS": "tcp"}
