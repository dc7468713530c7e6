"""Decision: how both models of a comparison are served: one engine, the same for both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ByteSize, JsonValue

from launcher.profile import Device, Model, Ports, Profile, Quantization, Roles, RoleSettings
from launcher.quantize.gate.scores import WIDTH

NAME = "model"
"""Under which it is served."""
_CPU_KV_CACHE = ByteSize(2**30)
_STEP = 1024
"""Tokens of one step. Log-probabilities of a prompt need memory for the whole vocabulary at each of these, several
times over and beside what the engine counts on: with its default, a GPU's share that is left free does not suffice."""
_GPU_SHARE = 0.85
_OURS: Mapping[str, JsonValue] = {"max-logprobs": WIDTH, "logprobs-mode": "raw_logprobs"}


@dataclass(frozen=True, slots=True)
class Serving:
    """The same for both sides; what is quantized apart, a comparison must differ in nothing."""

    device: Device
    max_model_len: int
    """Tokens of the longest record, and one more."""
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: bool = False
    devices: tuple[int | str, ...] = ()
    """GPUs by index or UUID; the first ones by default."""
    kv_cache_memory: int | None = None
    """Bytes."""
    gpu_memory_utilization: float | None = None
    attention_backend: str | None = None
    enforce_eager: bool = False
    trust_remote_code: bool = False
    engine_args: Mapping[str, JsonValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    engine_command: tuple[str, ...] | None = None
    startup_timeout: int = 600
    """Seconds."""


def default(device: Device, max_model_len: int) -> Serving:
    """Without a profile."""
    on_cpu = device is Device.CPU
    return Serving(
        device=device,
        max_model_len=max_model_len,
        kv_cache_memory=_CPU_KV_CACHE if on_cpu else None,
        gpu_memory_utilization=None if on_cpu else _GPU_SHARE,
        enforce_eager=on_cpu,
    )


def as_in(profile: Profile, max_model_len: int) -> Serving:
    """As one engine of a user's profile would run, of the role that generates."""
    role, settings = profile.roles.items()[-1]
    on_cuda = profile.device is Device.CUDA
    return Serving(
        device=profile.device,
        max_model_len=max_model_len,
        dtype=profile.model.dtype,
        kv_cache_dtype=profile.quantization_of(role).kv_cache_dtype,
        tensor_parallel=settings.tensor_parallel,
        pipeline_parallel=settings.pipeline_parallel,
        expert_parallel=settings.expert_parallel,
        devices=tuple((settings.devices or [])[: settings.tensor_parallel * settings.pipeline_parallel]),
        kv_cache_memory=settings.kv_cache_memory and int(settings.kv_cache_memory),
        gpu_memory_utilization=settings.gpu_memory_utilization or (_GPU_SHARE if on_cuda else None),
        attention_backend=settings.attention_backend,
        enforce_eager=settings.enforce_eager,
        trust_remote_code=profile.model.trust_remote_code,
        engine_args={**profile.engine_args, **settings.engine_args},
        env={**profile.env, **settings.env},
        engine_command=None if profile.engine_command is None else tuple(profile.engine_command),
        startup_timeout=profile.startup_timeout,
    )


def profile_of(model: Path, serving: Serving, port: int) -> Profile:
    """One engine of the model in this folder, at this port or the next that is free.

    Without a prefix cache: log-probabilities of prompts would not use it, but measured speed would.
    """
    return Profile.model_validate(
        {
            "description": "One side of a comparison",
            "device": serving.device,
            "model": Model.model_validate(
                {
                    "path": model,
                    "served_name": NAME,
                    "dtype": serving.dtype,
                    "max_model_len": serving.max_model_len,
                    "trust_remote_code": serving.trust_remote_code,
                }
            ),
            "roles": Roles(
                aggregated=RoleSettings.model_validate(
                    {
                        "devices": [*serving.devices] or None,
                        "tensor_parallel": serving.tensor_parallel,
                        "pipeline_parallel": serving.pipeline_parallel,
                        "expert_parallel": serving.expert_parallel,
                        "kv_cache_memory": serving.kv_cache_memory and ByteSize(serving.kv_cache_memory),
                        "gpu_memory_utilization": serving.gpu_memory_utilization,
                        "max_num_batched_tokens": _STEP,
                        "attention_backend": serving.attention_backend,
                        "enforce_eager": serving.enforce_eager,
                        "enable_prefix_caching": False,
                    }
                )
            ),
            "quantization": Quantization.model_validate({"kv_cache_dtype": serving.kv_cache_dtype}),
            "ports": Ports(engine=port),
            "engine_args": {
                key: value for key, value in serving.engine_args.items() if key.replace("_", "-") not in _OURS
            }
            | dict(_OURS),
            "env": dict(serving.env),
            "engine_command": serving.engine_command and [*serving.engine_command],
            "startup_timeout": serving.startup_timeout,
        }
    )
