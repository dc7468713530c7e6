"""Contract shape: everything the proxy is told, as one versioned JSON file.

The launcher dumps it, the proxy loads it, and follows it when it changes. A file of another version or with unknown
keys is refused, so a mixed upgrade is noticed at once and not by a request.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from proxy.pools import MAIN, OF_POOLS, rule_faults
from proxy.settings import STRICT, Settings
from proxy.split import Split, split_faults
from proxy.topology import Topology

VERSION: Literal[5] = 5
ABOUT = "about.json"
"""Beside the file: what the launcher tells people of the deployment; the proxy only passes it on."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The instances are the pods of a Kubernetes cluster that bear these labels, and not those of the topology."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    selector: Annotated[str, Field(min_length=1)]
    """Of labels, as in ``kubectl get pods --selector``."""
    namespace: str | None = None
    """Default: the one in which the proxy runs, else that of the kubeconfig's context."""
    reconcile: Annotated[float, Field(gt=0)] = 30.0
    """Seconds after which all pods are read anew at the latest, whatever the watch has told meanwhile."""


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """The whole configuration of one proxy."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    topology: Topology
    settings: Settings = field(default_factory=Settings)
    discovery: Discovery | None = None
    """With it the topology only tells the connector."""
    draining: tuple[str, ...] = ()
    """Names of instances that get no new requests; those they have are finished."""
    split: Split | None = None
    """How the requests that no rule takes are divided among pools; with several pools only."""
    version: Literal[5] = VERSION
    """Of this file's format."""


class ConfigError(Exception):
    """The configuration file cannot be read or does not fit :class:`ProxyConfig`."""


_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def fits(name: str) -> bool:
    """Whether an instance may be called so: names are sent in headers."""
    return _NAME.fullmatch(name) is not None


def dump(config: ProxyConfig) -> str:
    """The configuration as stable, indented JSON text with a final newline."""
    return _adapter().dump_json(config, indent=2).decode() + "\n"


def load(path: Path) -> ProxyConfig:
    """Read a file written by :func:`dump`; raises :class:`ConfigError` naming the file and every wrong key."""
    try:
        text = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"cannot read the proxy's configuration {path}: {exc.strerror}") from exc
    try:
        config = _adapter().validate_json(text)
    except ValidationError as exc:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or '(whole file)'}: {e['msg']}" for e in exc.errors())
        raise ConfigError(f"{path} is not a configuration of this proxy (version {VERSION}): {wrong}") from exc
    names = [instance.name for instance in config.topology.instances]
    if config.discovery is not None and (names or config.draining):
        raise ConfigError(f"{path}: discovery finds the instances itself: remove {names or 'draining'}")
    if unfit := [name for name in names if not fits(name)]:
        raise ConfigError(f"{path}: topology.instances: a name is 1 to 64 of A-Z a-z 0-9 . _ -, not {unfit[0]!r}")
    wrong_names = [name for name in names if names.count(name) > 1] + [n for n in config.draining if n not in names]
    if wrong_names:
        raise ConfigError(f"{path}: each instance needs a name of its own, draining names only such: {wrong_names}")
    pools = dict.fromkeys(instance.pool for instance in config.topology.instances if instance.pool)
    if bad := [pool for pool in pools if pool == MAIN or not re.fullmatch(OF_POOLS, pool)]:
        raise ConfigError(
            f"{path}: topology.instances: a pool is 1 to 24 of a-z 0-9 -, empty for the main one, not {bad[0]!r}"
        )
    for where, fault in rule_faults(config.settings.pools.rules, pools):
        raise ConfigError(f"{path}: settings.pools.rules.{'.'.join(map(str, where))}: {fault}")
    if config.split is None:
        return config
    if config.discovery is not None:
        raise ConfigError(f"{path}: split: there are no pools in a cluster: remove it")
    for key, fault in split_faults(config.split, pools):
        raise ConfigError(f"{path}: split.{key}: {fault}")
    return config


@cache
def _adapter() -> TypeAdapter[ProxyConfig]:
    """Built when it is needed: most verbs do not, and start sooner."""
    return TypeAdapter(ProxyConfig)
