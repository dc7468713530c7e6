"""Mooncake: prefill writes into decode; a bootstrap server in prefill's engine tells who is where."""

from pydantic import JsonValue

from launcher.kv_transfer.setup import ConnectorSetup, Engine
from launcher.profile import KVTransfer, Mooncake


def mooncake(settings: KVTransfer, engine: Engine) -> ConnectorSetup:
    """``MooncakeConnector``. Engines advertise ``VLLM_HOST_IP``."""
    mine = settings.mooncake or Mooncake()
    config: dict[str, JsonValue] = {
        "kv_connector": "MooncakeConnector",
        "kv_role": engine.kv_role,
        "kv_load_failure_policy": settings.load_failure_policy.value,
        "kv_connector_extra_config": {"mooncake_protocol": mine.protocol, "device_name": mine.device_name},
    }
    env = {"VLLM_HOST_IP": engine.host}
    if engine.port is not None:
        env["VLLM_MOONCAKE_BOOTSTRAP_PORT"] = str(engine.port)
    return ConnectorSetup(config, env)
