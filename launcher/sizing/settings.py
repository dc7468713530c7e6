"""Decision: what of an engine's command line decides its memory, completed by the engine's own defaults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from launcher.command_line import connectors_of, json_of, options_of, speculation_of
from launcher.gpus import DEFAULT_SHARE
from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing.weights import Sharding

GIB = 2**30
_MULTIPLES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_KEEPS_WINDOWS = frozenset(
    {
        *("NixlConnector", "NixlPullConnector", "NixlPushConnector", "MooncakeConnector", "MooncakeStoreConnector"),
        *("OffloadingConnector", "SimpleCPUOffloadConnector", "MoRIIOConnector", "HiSparseConnector"),
    }
)
"""Connectors that can do with layers of which each keeps other tokens; with any other, all layers keep all tokens."""
_SYNCHRONOUS = frozenset({"ngram", "suffix", "medusa", "mlp_speculator", "custom_class"})
"""Speculation with which the engine does not prepare a step while the last one runs."""


@dataclass(frozen=True, slots=True)
class Speculating:
    """Draft tokens, and what drafts them."""

    method: str
    tokens: int
    draft: Checkpoint | None
    tensor_parallel: int | None
    """Of the draft; ``None``: as the target."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One engine, as far as its memory goes."""

    device: Device
    model: Checkpoint
    sharding: Sharding
    dtype: str
    kv_dtype: str
    quantization: str | None
    """What 16-bit weights are made into while they are loaded, or the checkpoint's own scheme."""
    longest: int | None
    """Tokens of one request; ``None``: what the model is made for; -1: what fits."""
    requests: int
    """In one batch."""
    step: int
    """Tokens of one step at most."""
    block_size: int | None
    share: float
    """Of a device's memory."""
    kv_memory: int | None
    """Bytes on each device; ``None``: what is left."""
    blocks: int | None
    eager: bool
    windows: bool
    """Whether layers that look back a window only keep that."""
    batches: int
    """Steps under way at a time."""
    speculation: Speculating | None
    adapters: tuple[int, int] | None
    """LoRA adapters held at once, and the largest rank of one."""
    overrides: Mapping[str, JsonValue]
    """What is said in place of the model's ``config.json``."""


def settings_of(argv: Sequence[str], env: Mapping[str, str], device: Device, card: tuple[str, int]) -> EngineSettings:
    """From the command line and variables of an engine on a device of this name with so much memory in bytes."""
    options = options_of(argv)
    tensor, pipeline = (number(options.get(f"{kind}-parallel-size")) or 1 for kind in ("tensor", "pipeline"))
    data = number(options.get("data-parallel-size")) or 1
    speculation = _speculating(options)
    longest = number(options.get("max-model-len"), automatic=-1)
    requests, step = _batch(options, device, card, tensor * pipeline, longest)
    is_asynchronous = options.get("async-scheduling") != "false" and device is Device.CUDA
    if speculation is not None and speculation.method in _SYNCHRONOUS:
        is_asynchronous = False
    kv_memory = number(options.get("kv-cache-memory-bytes") or options.get("kv-cache-memory"))
    if device is Device.CPU and (space := number(env.get("VLLM_CPU_KVCACHE_SPACE"))):
        kv_memory = space * GIB
    quantization = options.get("quantization")
    return EngineSettings(
        device=device,
        model=Checkpoint(options.get("model", ""), options.get("revision")),
        sharding=Sharding(tensor, pipeline, data, options.get("enable-expert-parallel") == "true"),
        dtype=options.get("dtype", "auto"),
        kv_dtype=options.get("kv-cache-dtype", "auto"),
        quantization=None if quantization in {None, "none", "null"} else quantization,
        longest=longest,
        requests=requests,
        step=step,
        block_size=number(options.get("block-size")),
        share=_share(options.get("gpu-memory-utilization")),
        kv_memory=kv_memory,
        blocks=number(options.get("num-gpu-blocks-override")),
        eager=options.get("enforce-eager") == "true",
        windows=_keeps_windows(options),
        batches=pipeline + 1 if is_asynchronous else pipeline,
        speculation=speculation,
        adapters=_adapters(options),
        overrides=json_of(options.get("hf-overrides")),
    )


def number(text: str | None, *, automatic: int | None = None) -> int | None:
    """A number as vLLM's options take it (``16k`` is 16,000, ``16K`` 16,384); ``None`` for none."""
    if text is None:
        return None
    text = text.strip()
    if automatic is not None and text.lower() in {"auto", "-1"}:
        return automatic
    try:
        return int(float(text[:-1]) * _MULTIPLES[text[-1]]) if text[-1:] in _MULTIPLES else int(text)
    except ValueError:
        return None


def _batch(
    options: Mapping[str, str], device: Device, card: tuple[str, int], world: int, longest: int | None
) -> tuple[int, int]:
    """Requests and tokens of one step: what is said, else the engine's defaults for this device."""
    name, memory = card
    if device is Device.CPU:
        requests, step = 128 * world, 2048 * world
    elif memory >= 160 * GIB:
        requests, step = 1024, 16384
    elif memory >= 70 * GIB and "a100" not in name.lower():
        requests, step = 1024, 8192
    else:
        requests, step = 256, 2048
    times = 2 if options.get("performance-mode") == "throughput" else 1
    given = number(options.get("max-num-seqs")), number(options.get("max-num-batched-tokens"))
    requests = given[0] or requests * times
    if given[1] is None:
        step *= times
        if options.get("enable-chunked-prefill") == "false" and longest:
            step = max(step, longest)
        step = min(step, requests * longest) if longest and longest > 0 else step
    else:
        step = given[1]
    return (requests if given[0] else min(requests, step)), step


def _share(text: str | None) -> float:
    try:
        return float(text) if text is not None else DEFAULT_SHARE
    except ValueError:
        return DEFAULT_SHARE


def _keeps_windows(options: Mapping[str, str]) -> bool:
    told = options.get("disable-hybrid-kv-cache-manager")
    connectors = [*connectors_of(json_of(options.get("kv-transfer-config")))]
    return told == "false" or (told is None and all(name in _KEEPS_WINDOWS for name in connectors))


def _adapters(options: Mapping[str, str]) -> tuple[int, int] | None:
    if options.get("enable-lora") != "true":
        return None
    return number(options.get("max-loras")) or 1, number(options.get("max-lora-rank")) or 16


def _speculating(options: Mapping[str, str]) -> Speculating | None:
    told = speculation_of(options)
    if not told:
        return None
    draft, revision, parallel = (told.get(key) for key in ("model", "revision", "draft_tensor_parallel_size"))
    tokens = told.get("num_speculative_tokens")
    method = str(told.get("method") or ("draft_model" if draft else "ngram"))
    return Speculating(
        method,
        tokens if isinstance(tokens, int) else 0,
        Checkpoint(draft, revision if isinstance(revision, str) else None) if isinstance(draft, str) else None,
        parallel if isinstance(parallel, int) else None,
    )


def checkpoints_of(settings: EngineSettings) -> Iterator[Checkpoint]:
    """What has to be known of models to size it."""
    yield settings.model
    if settings.speculation is not None and settings.speculation.draft is not None:
        yield settings.speculation.draft
