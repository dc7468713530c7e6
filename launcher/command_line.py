"""Decision: reads from an engine's command line what it does with its options."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

_DRAFTS_WITHOUT_KV = frozenset({"ngram", "ngram_gpu", "suffix", "medusa"})
_OF_A_DRAFT = ("revision", "code_revision", "quantization", "kv_cache_dtype", "parallel_drafting")
_OF_ONE_SIDE = frozenset(
    {
        *("kv_connector", "kv_role", "engine_id", "kv_load_failure_policy", "kv_ip", "kv_port", "kv_rank"),
        *("num_threads", "num_workers", "engine_ttl", "kv_recompute_threshold", "decoder_kv_blocks_ttl"),
        *("push_registration_timeout", "http_port", "handshake_port", "notify_port", "host_ip", "device_name"),
    }
)
"""Settings of a connector that need not be the same on both sides."""


def options_of(argv: Sequence[str]) -> dict[str, str]:
    """An engine's options without dashes; a switch is ``true`` or ``false``."""
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for part in argv:
        if part.startswith("--"):
            name, equals, value = part[2:].partition("=")
            values = found[name] = [value] if equals else []
        else:
            values.append(part)
    texts = {name: " ".join(values) or "true" for name, values in found.items()}
    return {
        name.removeprefix("no-"): "false" if name.startswith("no-") and text == "true" else text
        for name, text in texts.items()
    }


def speculation_of(options: Mapping[str, str]) -> dict[str, JsonValue]:
    """Its configuration, from whichever options give it; empty for none."""
    config = json_of(options.get("speculative-config"))
    for option, key in (("spec-method", "method"), ("spec-model", "model")):
        if option in options:
            config[key] = options[option]
    return config


def drafts_with_kv(speculation: Mapping[str, JsonValue]) -> bool:
    """Whether the draft has layers in the KV cache."""
    return bool(speculation) and speculation.get("method") not in _DRAFTS_WITHOUT_KV


def draft_of(speculation: Mapping[str, JsonValue]) -> str:
    """Method and draft where the draft has layers in the KV cache. How many tokens it drafts may differ."""
    if not drafts_with_kv(speculation):
        return "without KV layers"
    method = speculation.get("method", "draft_model")
    details = [f"{key}={_text(speculation[key])}" for key in _OF_A_DRAFT if key in speculation]
    return " ".join([str(method), *([str(speculation["model"])] if "model" in speculation else []), *details])


def connectors_of(config: Mapping[str, JsonValue]) -> Iterator[str]:
    """The names of the connectors that move KV: of several, those inside."""
    inner = [*_inner(config)]
    if inner:
        for each in inner:
            yield from connectors_of(each)
    elif isinstance(name := config.get("kv_connector"), str):
        yield name


def _inner(config: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    extra = config.get("kv_connector_extra_config")
    connectors = extra.get("connectors") if isinstance(extra, dict) else None
    yield from (each for each in (connectors if isinstance(connectors, list) else []) if isinstance(each, dict))


def settings_of(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """All that both sides share, one by one, with the way to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _OF_ONE_SIDE:
                yield from settings_of(item, path if key == "kv_connector_extra_config" else f"{path}.{key}".strip("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from settings_of(item, f"{path}.{number}")
    else:
        yield path, _text(value)


def json_of(text: str | None) -> dict[str, JsonValue]:
    """Empty when it is no JSON object: the engine will say so."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
