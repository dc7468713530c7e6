"""Connectors over a store that all engines know: files, or LMCache's."""

from pathlib import Path

from pydantic import JsonValue

from launcher.kv_transfer import nixl
from launcher.kv_transfer.setup import ConnectorSetup, Engine
from launcher.paths import absolute
from launcher.profile import KVTransfer

_HASH = "sha256_cbor"
_WHOLE_PROMPTS: dict[str, JsonValue] = {"enable-chunked-prefill": False}
"""Of a prompt that is computed in pieces, ``ExampleConnector`` writes only the first."""


def shared_storage(settings: KVTransfer, engine: Engine) -> ConnectorSetup:
    """``ExampleConnector``, inside of ``MultiConnector``.

    For some prompts, one of a single token among them, it counts less than nothing, which ends the engine. The other
    one passes over that.
    """
    return ConnectorSetup(_several(settings, engine, _files(settings, engine)), options=_WHOLE_PROMPTS)


def multi(settings: KVTransfer, engine: Engine) -> ConnectorSetup:
    """``MultiConnector``: decode takes the KV from the first that has it, prefill gives it to all."""
    first = nixl.pull(settings, engine)
    child = {key: value for key, value in first.config.items() if key != "kv_load_failure_policy"}
    config = _several(settings, engine, child, _files(settings, engine))
    return ConnectorSetup(config, first.env, first.env_defaults, _WHOLE_PROMPTS)


def lmcache(settings: KVTransfer, engine: Engine) -> ConnectorSetup:
    """``LMCacheConnectorV1``. Engines find KV by a hash of the tokens: it must come out the same in all of them."""
    assert settings.lmcache is not None, "the profile is checked"
    extra: dict[str, JsonValue] = {
        "lmcache.remote_url": settings.lmcache.remote_url,
        "lmcache.chunk_size": 256,
        "lmcache.pre_caching_hash_algorithm": _HASH,
    }
    config: dict[str, JsonValue] = {
        "kv_connector": "LMCacheConnectorV1",
        "kv_role": engine.kv_role,
        "kv_load_failure_policy": settings.load_failure_policy.value,
        "kv_connector_extra_config": extra,
    }
    return ConnectorSetup(config, {"PYTHONHASHSEED": "0"}, options={"prefix-caching-hash-algo": _HASH})


def _several(settings: KVTransfer, engine: Engine, *children: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "kv_connector": "MultiConnector",
        "kv_role": engine.kv_role,
        "kv_load_failure_policy": settings.load_failure_policy.value,
        "kv_connector_extra_config": {"connectors": list(children)},
    }


def _files(settings: KVTransfer, engine: Engine) -> dict[str, JsonValue]:
    given = settings.shared_storage.path if settings.shared_storage else None
    path = engine.run_directory / "kv" if given is None else Path(absolute(given, "kv_transfer.shared_storage.path"))
    path /= engine.pool  # a file is found by its prompt's tokens: those of other weights must not be found
    return {
        "kv_connector": "ExampleConnector",
        "kv_role": engine.kv_role,
        "kv_connector_extra_config": {"shared_storage_path": str(path)},
    }
