"""The instances, by what they do."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from launcher.profile.operation import Scaling, Secrets
from launcher.profile.quantization import Quantization
from launcher.profile.shape import EnvironmentName, Memory, Name, Number, Positive, Shape
from launcher.profile.speculation import Speculation
from proxy.topology import Role


class Device(StrEnum):
    """What the engines compute on."""

    CPU = "cpu"
    CUDA = "cuda"


_MOST_DEVICES = 1000


class RoleSettings(Shape):
    """The instances of one role. What is not given here is the engine's default, or the profile's for all roles."""

    replicas: Number = 1
    """Instances of this role."""
    scaling: Scaling | None = None
    """How many instances there may be in a cluster."""
    devices: Annotated[list[Annotated[int, Field(ge=0)] | Name], Field(min_length=1)] | None = None
    """GPUs by index or UUID, first those of the first instance; two roles may share some. Default: the next free."""
    device_type: Name | None = None
    """The kind of GPU, e.g. `H100` or `L40S`, where it is not the one of this machine."""
    device_memory: Memory | None = None
    """Memory of one device, e.g. `80GiB`; default: what is known of `device_type`, else this machine's."""
    nodes: Number = 1
    """Machines of a cluster that one instance spans, each with an equal share of its devices."""
    cores: Number | None = None
    """CPU cores of one instance; default: an equal share of the machine's. In a cluster what one pod asks for; default
    there: 4 for an engine on a CPU."""
    tensor_parallel: Number = 1
    """Devices that share each layer's weights."""
    pipeline_parallel: Number = 1
    """Groups of devices that share the layers."""
    data_parallel: Number = 1
    """Copies of the model in one instance; for mixtures of experts, others use `replicas`."""
    expert_parallel: bool = False
    """Give whole experts to devices instead of a part of each."""
    kv_cache_memory: Memory | None = None
    """Size of one instance's KV cache, e.g. `256MiB`. Needed on a CPU; on CUDA in place of what the next key leaves."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of each GPU's memory for weights and KV cache; default: the engine's (0.92). With `kv_cache_memory` only
    what must be free when the engine starts."""
    block_size: Positive | None = None
    """Tokens in one block of the KV cache; default: the engine's (16 on a GPU, 128 on a CPU)."""
    max_num_seqs: Positive | None = None
    """Requests in one batch."""
    max_num_batched_tokens: Positive | None = None
    """Tokens in one step of the engine."""
    max_num_queued_reqs: Positive | None = None
    """Requests, waiting and running, above which the engine answers 503; default: no limit."""
    enable_prefix_caching: bool | None = None
    """Reuse the KV cache of prompts that begin alike; default: the engine's (`true`)."""
    enable_chunked_prefill: bool | None = None
    """Compute long prompts in pieces between the steps of others; default: the engine's (`true`)."""
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    """Who is served first: who came first, or whose request says so."""
    performance_mode: Literal["balanced", "interactivity", "throughput"] | None = None
    """What the engine's own defaults are chosen for."""
    attention_backend: Name | None = None
    """vLLM's name of the attention kernels, e.g. `FLASH_ATTN`; default: the engine chooses."""
    enforce_eager: bool = False
    """Skip compilation and graph capture: starts faster, runs slower on GPUs; needed on a CPU without a C++ compiler
    or with a blank in the path of the virtual environment."""
    quantization: Quantization | None = None
    """In place of the profile's `quantization`, for this role."""
    speculation: Speculation | None = None
    """In place of the profile's `speculation`, for this role; `{method: off}` for none."""
    engine_args: dict[str, JsonValue] = {}
    """Any other vLLM option by its name without dashes, e.g. `{max-logprobs: 5}`; added to the profile's."""
    env: dict[EnvironmentName, str] = {}
    """Added to the engine's environment, and to the profile's `env`."""
    secrets: Secrets = {}
    """Variables of the engine's environment whose text is elsewhere; added to the profile's `secrets`."""

    @model_validator(mode="after")
    def _one_instance(self) -> Self:
        if self.devices_per_instance > _MOST_DEVICES:
            raise ValueError(
                f"an instance of {self.devices_per_instance} devices (tensor_parallel x pipeline_parallel x "
                f"data_parallel): {_MOST_DEVICES} at most"
            )
        if self.devices_per_instance % self.nodes:
            raise ValueError(
                f"nodes: {self.nodes} machines cannot share an instance of {self.devices_per_instance} devices equally "
                "(tensor_parallel x pipeline_parallel x data_parallel): change one of them"
            )
        return self

    @property
    def devices_per_instance(self) -> int:
        """On CUDA."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel


class Roles(Shape):
    """Either prefill and decode together, or aggregated."""

    prefill: RoleSettings | None = None
    """Compute prompts and hand their KV cache over."""
    decode: RoleSettings | None = None
    """Take a prompt's KV cache and generate the answer."""
    aggregated: RoleSettings | None = None
    """Do both."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.prefill is None) != (self.decode is None):
            raise ValueError("prefill and decode come together: one alone cannot serve")
        if (self.prefill is None) == (self.aggregated is None):
            extra = "" if self.prefill is None else ", not all three (null takes away what `extends` brings)"
            raise ValueError(f"give either prefill and decode, or aggregated{extra}")
        return self

    def items(self) -> tuple[tuple[Role, RoleSettings], ...]:
        """The roles in use, in the order prefill, decode, aggregated."""
        return tuple((role, settings) for role in Role if (settings := getattr(self, role.value)) is not None)
