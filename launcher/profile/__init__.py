"""Shape: what a profile may say. Unknown keys are refused; the loader turns every fault into file:line and key path.

The docstring of each key is its documentation: `launcher schema` and docs/profiles.md are made of it.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, JsonValue

from launcher.profile.kv_transfer import KVTransfer, LMCache, LoadFailurePolicy, Mooncake, SharedStorage
from launcher.profile.model import LoRA, Model
from launcher.profile.operation import Objectives, Ports, Scaling, SecretReference, Secrets
from launcher.profile.pool import Pool
from launcher.profile.quantization import Quantization
from launcher.profile.roles import Device, Roles, RoleSettings
from launcher.profile.shape import EnvironmentName, Shape
from launcher.profile.speculation import Draft, Speculation, SpeculationMethod, Suffix
from proxy.pools import PoolName
from proxy.settings import Settings as ProxySettings
from proxy.topology import Role


class Profile(Shape):
    """A deployment as its owner wants it."""

    description: str
    """What it is for, in a sentence."""
    device: Device
    """What the engines compute on."""
    model: Model
    roles: Roles
    kv_transfer: KVTransfer = Field(default_factory=KVTransfer)
    quantization: Quantization = Field(default_factory=Quantization)
    """Of all roles."""
    speculation: Speculation | None = None
    """Of all roles; methods without KV layers of their own run on decode only."""
    objectives: Objectives = Field(default_factory=Objectives)
    proxy: ProxySettings = Field(default_factory=ProxySettings)
    """The address clients use, and how the proxy deals with load and failures."""
    ports: Ports = Field(default_factory=Ports)
    engine_args: dict[str, JsonValue] = {}
    """Any other vLLM option by its name without dashes, for all roles."""
    env: dict[EnvironmentName, str] = {}
    """Added to the environment of all engines."""
    secrets: Secrets = {}
    """Variables of all engines' environment whose text is elsewhere, e.g. `{HF_TOKEN: {env: HF_TOKEN}}`."""
    startup_timeout: Annotated[int, Field(ge=1)] = 600
    """Seconds in which an engine must be ready, counted from its own start."""
    engine_command: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] | None = None
    """Starts an engine when vLLM's options are appended, e.g. `[numactl, -N0, vllm, serve]`; default: vLLM in the
    launcher's own Python."""

    pools: dict[PoolName, Pool] = {}
    """Further instances with other weights or settings, by a name; `proxy.pools` says which requests they get."""

    def by_pool(self) -> Mapping[str, "Profile"]:
        """The profile of each pool by itself, the main one's first, by :attr:`proxy.topology.Instance.pool`."""
        main = self.model_copy(update={"pools": {}})
        own = {name: {key: getattr(pool, key) for key in Pool.model_fields} for name, pool in self.pools.items()}
        return {"": main, **{name: main.model_copy(update=what) for name, what in own.items()}}

    def quantization_of(self, role: Role) -> Quantization:
        """The role's own, else that of all."""
        own: Quantization | None = getattr(self.roles, role.value).quantization
        return self.quantization if own is None else own

    def speculation_of(self, role: Role) -> Speculation | None:
        """The role's own, else that of all; ``None`` for none."""
        own: Speculation | None = getattr(self.roles, role.value).speculation
        chosen = self.speculation if own is None else own
        return None if chosen is None or chosen.method is SpeculationMethod.OFF else chosen


__all__ = [
    "Device",
    "Draft",
    "KVTransfer",
    "LMCache",
    "LoRA",
    "LoadFailurePolicy",
    "Model",
    "Mooncake",
    "Objectives",
    "Pool",
    "Ports",
    "Profile",
    "Quantization",
    "RoleSettings",
    "Roles",
    "Scaling",
    "SecretReference",
    "Secrets",
    "SharedStorage",
    "Speculation",
    "SpeculationMethod",
    "Suffix",
]
