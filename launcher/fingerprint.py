"""Decision: what the plan tells of each engine that its partners must share.

Read from the command lines and variables with which the engines will run, so that nothing which a profile can say gets
past it. An option that one engine has and another leaves out counts as different: engines choose their defaults by
their device and their model, and may choose another one.
"""

from collections.abc import Iterator, Mapping, Sequence

from launcher.command_line import (
    connectors_of,
    draft_of,
    drafts_with_kv,
    json_of,
    options_of,
    settings_of,
    speculation_of,
)
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
        # What is loaded. Not how it is quantized while loading: that can only be asked for by name, role by role.
        *("revision", "code-revision", "load-format", "model-impl"),
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
    options = options_of(engine.argv)
    found = {}
    if model := options.get("model"):
        found[Fact.WEIGHTS] = Checkpoint(model, options.get("revision"))
    speculation = speculation_of(options)
    if drafts_with_kv(speculation) and isinstance(draft := speculation.get("model"), str):
        revision = speculation.get("revision")
        found[Fact.DRAFT_WEIGHTS] = Checkpoint(draft, revision if isinstance(revision, str) else None)
    return found


def _facts(engine: EngineInstance, inventory: Inventory) -> Iterator[tuple[str, str]]:
    options = options_of(engine.argv)
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
    yield Fact.SPECULATION, draft_of(speculation_of(options))
    connector = json_of(options.get("kv-transfer-config"))
    if names := " + ".join(connectors_of(connector)):
        yield Fact.CONNECTOR, names
    for path, setting in settings_of(connector):
        yield f"{Fact.CONNECTOR} setting {path}", setting
    if "PYTHONHASHSEED" in engine.env:
        yield Fact.HASH_SEED, engine.env["PYTHONHASHSEED"]
    yield from ((f"variable {name}", engine.env[name]) for name in _VARIABLES if name in engine.env)
