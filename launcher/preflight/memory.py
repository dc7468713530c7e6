"""Does it fit in memory? Only for engines on a CPU: on CUDA the engine measures for itself."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ByteSize

from launcher.plan import EngineInstance
from launcher.preflight.checkpoint import read_config
from launcher.preflight.finding import Case, Fault, Layer, Rule
from launcher.profile import Device

# Resident memory of a vLLM 0.32 CPU server beyond weights and KV cache, both of its processes together: measured
# 1.9 GiB with a model of 135 M parameters.
_ENGINE_OVERHEAD = int(2.0 * 2**30)
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


def _too_large(case: Case) -> Iterator[Fault]:
    """A sum larger than the machine's free memory."""
    plan = case.plan
    if plan.device is not Device.CPU:
        return
    weights = sum(file.stat().st_size for file in Path(plan.model).glob("*.safetensors") if file.is_file())
    needed = sum(weights + (engine.kv_cache_memory or 0) + _ENGINE_OVERHEAD for engine in plan.engines)
    if needed > case.inventory.memory_available:
        yield Fault(
            "roles",
            f"not enough memory: {len(plan.engines)} engines need about {_human(needed)} (weights {_human(weights)}, "
            f"about {_human(_ENGINE_OVERHEAD)} for each process, plus its KV cache), "
            f"{_human(case.inventory.memory_available)} are free",
            "lower roles.*.kv_cache_memory or roles.*.replicas",
        )


def _too_small(case: Case) -> Iterator[Fault]:
    """KV caches too small for one request."""
    if case.plan.device is Device.CPU:
        for engine in case.plan.engines:
            yield from _too_small_for_one_request(engine, case.plan.model)


def _too_small_for_one_request(engine: EngineInstance, model: str) -> Iterator[Fault]:
    per_token = _kv_bytes_per_token(model, _option(engine, "--dtype"), _option(engine, "--kv-cache-dtype"))
    length = _option(engine, "--max-model-len")
    if per_token is None or length is None or engine.kv_cache_memory is None:
        return
    if (needed := per_token * int(length)) > engine.kv_cache_memory:
        yield Fault(
            f"roles.{engine.role}.kv_cache_memory",
            f"{_human(engine.kv_cache_memory)} hold {engine.kv_cache_memory // per_token} tokens, but one request may "
            f"have {length} (model.max_model_len)",
            f"give at least {_human(needed)} or lower model.max_model_len",
        )


def _kv_bytes_per_token(model: str, dtype: str | None, kv_dtype: str | None) -> int | None:
    """Keys and values of one token over all layers; ``None`` when the configuration does not tell."""
    config = read_config(model)
    heads, layers, hidden = (config.get(key) for key in ("num_attention_heads", "num_hidden_layers", "hidden_size"))
    if not (isinstance(heads, int) and isinstance(layers, int) and isinstance(hidden, int) and heads):
        return None
    head_dim = config.get("head_dim") or hidden // heads
    declared = config.get("dtype") or config.get("torch_dtype")
    computed = declared if dtype in {None, "auto"} else dtype
    size = _BYTES.get(str(computed if kv_dtype in {None, "auto"} else kv_dtype), 2)
    return int(2 * layers * (config.get("num_key_value_heads") or heads) * head_dim * size)


def _option(engine: EngineInstance, name: str) -> str | None:
    return engine.argv[engine.argv.index(name) + 1] if name in engine.argv else None


def _human(size: int) -> str:
    return ByteSize(size).human_readable()


RULES = (
    Rule("memory/machine", Layer.MEMORY, "measured with vLLM 0.32 on a CPU", _too_large, needs_model=True),
    Rule("memory/one-request", Layer.MEMORY, "vLLM's size of a token's KV cache", _too_small, needs_model=True),
)
