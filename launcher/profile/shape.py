"""What all parts of a profile are made of."""

from typing import Annotated

from pydantic import BaseModel, ByteSize, ConfigDict, Field

Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=1, le=1000)]
"""Of instances, or of devices of one."""
Seconds = Annotated[float, Field(gt=0)]
Memory = Annotated[ByteSize, Field(ge=2**20)]
"""Bytes, written with a unit, e.g. ``256MiB``."""
OF_VARIABLES = r"^[A-Za-z_][A-Za-z0-9_]*$"
OF_NAMES = r"^[^-]"
EnvironmentName = Annotated[str, Field(pattern=OF_VARIABLES)]
Name = Annotated[str, Field(min_length=1, pattern=OF_NAMES)]
"""On a command line a dash in front would make it an option."""


class Shape(BaseModel):
    """Immutable, strict about types and keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # most verbs read no profile, and start sooner
    )
