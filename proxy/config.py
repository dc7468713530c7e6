"""Contract shape: everything the proxy is told, as one versioned JSON file.

The launcher dumps it, the proxy loads it. A file of another version or with unknown keys is refused, so a mixed
upgrade is noticed at the start and not by a request.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from proxy.topology import Topology

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FailurePolicy(StrEnum):
    """What happens to a request whose KV hand-over failed before the first byte of the answer."""

    FAIL = "fail"
    """The client gets the error."""
    RETRY = "retry"
    """Up to three pairs are tried, none after ``first_byte`` seconds; then the client gets the last error."""
    AGGREGATE = "aggregate"
    """Decode serves the whole request by itself, and the answer's headers say so."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds, each for one leg. There is no limit on the whole of a stream."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    connect: Seconds = 5.0
    """Until the TCP connection stands."""
    first_byte: Seconds = 300.0
    """Until status and headers; a long prompt computes for minutes."""
    idle: Seconds = 120.0
    """Between two chunks of an answer."""


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """The whole configuration of one proxy."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    topology: Topology
    host: str = "127.0.0.1"
    port: int = 8000
    failure_policy: FailurePolicy = FailurePolicy.AGGREGATE
    timeouts: Timeouts = field(default_factory=Timeouts)
    probe_interval: Seconds = 2.0
    """Seconds between two health probes of an instance."""
    version: Literal[1] = 1
    """Of this file's format."""


class ConfigError(Exception):
    """The configuration file cannot be read or does not fit :class:`ProxyConfig`."""


_ADAPTER = TypeAdapter(ProxyConfig)


def dump(config: ProxyConfig) -> str:
    """The configuration as stable, indented JSON text with a final newline."""
    return _ADAPTER.dump_json(config, indent=2).decode() + "\n"


def load(path: Path) -> ProxyConfig:
    """Read a file written by :func:`dump`; raises :class:`ConfigError` naming the file and every wrong key."""
    try:
        text = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"cannot read the proxy's configuration {path}: {exc.strerror}") from exc
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as exc:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or '(whole file)'}: {e['msg']}" for e in exc.errors())
        raise ConfigError(f"{path} is not a configuration of this proxy (version 1): {wrong}") from exc
