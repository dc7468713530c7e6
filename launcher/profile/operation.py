"""What a deployment aims at, how it may grow, and what it needs around it."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from launcher.profile.shape import EnvironmentName, Port, Positive, Seconds, Shape


class Objectives(Shape):
    """What the deployment is meant to reach; routing by TTFT, sizing and advice go by it."""

    ttft: Seconds = 0.2
    """Seconds until the first token."""
    tpot: Seconds | None = None
    """Seconds for each further token; default: no objective."""


class Scaling(Shape):
    """Bounds within which a cluster may change the number of instances; on one machine nothing does."""

    min_replicas: Annotated[int, Field(ge=0)] = 1
    """The fewest."""
    max_replicas: Positive
    """The most."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas {self.min_replicas} is more than max_replicas {self.max_replicas}")
        return self


class SecretReference(Shape):
    """Where a secret is when an engine starts; its text is in no profile, plan, state or log."""

    env: EnvironmentName | None = None
    """A variable of the launcher's own environment."""
    file: Path | None = None
    """A file whose whole content it is, without the last line end; `~` is expanded."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env or file: where the secret is")
        return self


Secrets = dict[EnvironmentName, SecretReference]


class Ports(Shape):
    """First port of each range; every instance takes the next free one."""

    engine: Port = 8100
    """Where engines serve HTTP."""
    side_channel: Port = 5600
    """Where NIXL's handshake listens."""
    bootstrap: Port = 8998
    """Where Mooncake's prefill instances tell of themselves."""
