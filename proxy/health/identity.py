"""Asks one instance what it is: all that vLLM 0.32 tells of itself without its developers' mode."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from proxy.agreement import ADAPTER, BETWEEN_NAMES, Fact
from proxy.engine import EngineClient
from proxy.topology import Instance

_CACHE_CONFIG = "vllm:cache_config_info"
_LABELS = {
    "block_size": Fact.BLOCK_SIZE,
    "cache_dtype": Fact.KV_DTYPE,
    "prefix_caching_hash_algo": Fact.HASH_ALGORITHM,
    "kv_cache_layout": "KV cache layout",
    "kv_cache_dtype_skip_layers": "layers without KV cache dtype",
    "sliding_window": "sliding window",
    "mamba_block_size": "Mamba block size",
    "mamba_cache_dtype": "Mamba cache dtype",
    "mamba_ssm_cache_dtype": "Mamba state dtype",
}
"""The labels that decide how a KV cache is laid out: what the engine has made of its options while it started."""


async def identify(client: EngineClient, instance: Instance, timeout: float) -> Mapping[str, str]:
    """Ask an instance that is healthy, for at most ``timeout`` seconds; what it does not tell is left out.

    Raises :class:`proxy.errors.EngineFailure` or :class:`TimeoutError` when it cannot be asked now.
    """
    async with asyncio.timeout(timeout):
        version, models, metrics = await asyncio.gather(
            *(_ask(client, instance, path) for path in ("/version", "/v1/models", "/metrics"))
        )
    return dict([*_version(version), *_models(models), *_cache(metrics.decode(errors="replace"))])


async def _ask(client: EngineClient, instance: Instance, path: str) -> bytes:
    """The answer's body; empty when it is an error."""
    status, body = await client.get(instance, path)
    return body if status == 200 else b""


def _version(body: bytes) -> Iterator[tuple[str, str]]:
    version = _object(body).get("version")
    if isinstance(version, str):
        yield Fact.VERSION, version


def _models(body: bytes) -> Iterator[tuple[str, str]]:
    """The model that was loaded, its names, and where its adapters come from."""
    listed = _object(body).get("data")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if names := sorted(str(entry["id"]) for entry in entries if "id" in entry and entry.get("parent") is None):
        yield Fact.SERVED_NAMES, BETWEEN_NAMES.join(names)
    for entry in entries:
        root, parent, length = (entry.get(key) for key in ("root", "parent", "max_model_len"))
        if root is not None:
            yield Fact.MODEL if parent is None else f"{ADAPTER}{entry.get('id')}", str(root)
        if length is not None:
            yield Fact.MAX_MODEL_LEN, str(length)


def _cache(text: str) -> Iterator[tuple[str, str]]:
    line = next((line for line in text.splitlines() if line.startswith(_CACHE_CONFIG + "{")), None)
    if line is None:
        return
    try:
        (family,) = text_string_to_metric_families(line + "\n")
    except ValueError:  # no metric of this name
        return
    for label, value in family.samples[0].labels.items():
        if label in _LABELS and value != "None":
            yield _LABELS[label], value


def _object(body: bytes) -> dict[str, Any]:
    """Empty when it is no JSON object."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
