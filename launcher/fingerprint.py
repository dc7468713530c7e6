"""Decision: what the plan tells of each engine that its partners must share.

Read from the command lines and variables with which the engines will run, so that nothing which a profile can say gets
past it. An option that one engine has and another leaves out counts as different: engines choose their defaults by
their device and their model, and may choose another one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from launcher.engine_args import ENGINE_MODULE
from launcher.inventory import Checkpoint, Inventory
from launcher.plan import EngineInstance
from proxy.agreement import NOT_SET, Fact, Facts

_NAMED: Mapping[str, Fact] = {
    "model": Fact.MODEL,
    "dtype": Fact.DTYPE,
    "kv-cache-dtype": Fact.KV_DTYPE,
    "block-size": Fact.BLOCK_SIZE,
    "max-model-len": Fact.MAX_MODEL_LEN,
    "prefix-caching-hash-algo": Fact.HASH_ALGORITHM,
}
_OPTIONS = frozenset(
    {
        # What is loaded.
        *("revision", "code-revision", "quantization", "quantization-config", "load-format", "model-impl"),
        *("hf-overrides", "hf-config-path", "config-format", "model-class-overrides"),
        # How its KV cache is computed and laid out.
        *("attention-backend", "attention-config", "disable-sliding-window", "disable-hybrid-kv-cache-manager"),
        *("kv-cache-dtype-skip-layers", "kv-sharing-fast-prefill"),
        *("mamba-block-size", "mamba-cache-dtype", "mamba-cache-mode", "mamba-ssm-cache-dtype"),
        # Which tokens a request becomes: both engines read it for themselves.
        *("tokenizer", "tokenizer-mode", "tokenizer-revision", "chat-template", "chat-template-content-format"),
        *("default-chat-template-kwargs", "trust-request-chat-template", "exclude-tools-when-tool-choice-none"),
        *("mm-processor-kwargs", "media-io-kwargs", "video-pruning-rate", "interleave-mm-strings"),
    }
)
_VARIABLES = (
    *("VLLM_USE_MODELSCOPE", "VLLM_MODEL_REDIRECT_PATH", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT"),
    *("VLLM_KV_CACHE_LAYOUT", "VLLM_SSM_CONV_STATE_LAYOUT", "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT", "VLLM_MLA_DISABLE"),
    *("VLLM_USE_V2_MODEL_RUNNER", "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", "VLLM_CPU_INT4_W4A8"),
    *("VLLM_GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS", "VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS", "VLLM_SYSTEM_START_DATE"),
)
_UNKNOWN_UNLESS_SET = frozenset(
    (Fact.VERSION, Fact.WEIGHTS, Fact.DRAFT_WEIGHTS, Fact.BLOCK_SIZE, Fact.MAX_MODEL_LEN, Fact.HASH_ALGORITHM)
)
"""The engine itself tells these when it runs, or nobody does."""
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


def fingerprints(engines: Sequence[EngineInstance], inventory: Inventory) -> Mapping[str, Facts]:
    """The facts of each engine, by its name."""
    found = {engine.name: dict(_facts(engine, inventory)) for engine in engines}
    names = dict.fromkeys(name for facts in found.values() for name in facts)
    return {
        instance: {name: facts.get(name, NOT_SET) for name in names if name in facts or name not in _UNKNOWN_UNLESS_SET}
        for instance, facts in found.items()
    }


def checkpoints(engine: EngineInstance) -> Mapping[Fact, Checkpoint]:
    """What it loads: the model, and the draft if that has layers in the KV cache."""
    options = _options(engine.argv)
    found = {}
    if model := options.get("model"):
        found[Fact.WEIGHTS] = Checkpoint(model, options.get("revision"))
    speculation = _speculation(options)
    if _has_kv(speculation) and isinstance(draft := speculation.get("model"), str):
        revision = speculation.get("revision")
        found[Fact.DRAFT_WEIGHTS] = Checkpoint(draft, revision if isinstance(revision, str) else None)
    return found


def _facts(engine: EngineInstance, inventory: Inventory) -> Iterator[tuple[str, str]]:
    options = _options(engine.argv)
    if inventory.engine_version and engine.argv[1 : 1 + len(ENGINE_MODULE)] == ENGINE_MODULE:
        yield Fact.VERSION, inventory.engine_version
    for fact, checkpoint in checkpoints(engine).items():
        if checkpoint in inventory.weights:
            yield fact, inventory.weights[checkpoint]
    for name, value in options.items():
        if name in _NAMED:
            yield _NAMED[name], value
        elif name.partition(".")[0] in _OPTIONS:
            yield f"option --{name}", value
    yield Fact.TENSOR_PARALLEL, options.get("tensor-parallel-size", "1")
    yield Fact.SPECULATION, _draft(_speculation(options))
    connector = _json(options.get("kv-transfer-config"))
    if names := " + ".join(_connectors(connector)):
        yield Fact.CONNECTOR, names
    for path, setting in _settings(connector):
        yield f"{Fact.CONNECTOR} setting {path}", setting
    if "PYTHONHASHSEED" in engine.env:
        yield Fact.HASH_SEED, engine.env["PYTHONHASHSEED"]
    yield from ((f"variable {name}", engine.env[name]) for name in _VARIABLES if name in engine.env)


def _options(argv: Sequence[str]) -> dict[str, str]:
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


def _speculation(options: Mapping[str, str]) -> dict[str, JsonValue]:
    config = _json(options.get("speculative-config"))
    for option, key in (("spec-method", "method"), ("spec-model", "model")):
        if option in options:
            config[key] = options[option]
    return config


def _has_kv(speculation: Mapping[str, JsonValue]) -> bool:
    return bool(speculation) and speculation.get("method") not in _DRAFTS_WITHOUT_KV


def _draft(speculation: Mapping[str, JsonValue]) -> str:
    """Method and draft where the draft has layers in the KV cache. How many tokens it drafts may differ."""
    if not _has_kv(speculation):
        return "without KV layers"
    method = speculation.get("method", "draft_model")
    details = [f"{key}={_text(speculation[key])}" for key in _OF_A_DRAFT if key in speculation]
    return " ".join([str(method), *([str(speculation["model"])] if "model" in speculation else []), *details])


def _connectors(config: Mapping[str, JsonValue]) -> Iterator[str]:
    """The names of the connectors that move KV: of several, those inside."""
    inner = [*_inner(config)]
    if inner:
        for each in inner:
            yield from _connectors(each)
    elif isinstance(name := config.get("kv_connector"), str):
        yield name


def _inner(config: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    extra = config.get("kv_connector_extra_config")
    connectors = extra.get("connectors") if isinstance(extra, dict) else None
    yield from (each for each in (connectors if isinstance(connectors, list) else []) if isinstance(each, dict))


def _settings(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """All that both sides share, one by one, with the way to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _OF_ONE_SIDE:
                yield from _settings(item, path if key == "kv_connector_extra_config" else f"{path}.{key}".strip("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _settings(item, f"{path}.{number}")
    else:
        yield path, _text(value)


def _json(text: str | None) -> dict[str, JsonValue]:
    """Empty when it is no JSON object: the engine will say so."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
