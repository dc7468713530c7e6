"""The configuration file of a running deployment's proxy, which follows it. All raise :class:`RunDirectoryError`."""

import fcntl
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from launcher.errors import RunDirectoryError
from proxy.config import ConfigError, ProxyConfig, dump, load
from proxy.split import Split


def fingerprint(file: Path, name: str) -> Mapping[str, str]:
    """What the proxy is told of an instance; empty when it is not told of it."""
    instances = _load(file).topology.instances
    return next((each.fingerprint for each in instances if each.name == name), {})


def draining(file: Path) -> Collection[str]:
    """The instances that get no new requests."""
    return _load(file).draining


def asks_operators(file: Path) -> bool:
    """Whether operators need a key."""
    return bool(_load(file).settings.admin_keys)


def proves_pairs(file: Path) -> bool:
    """Whether KV is handed over at all, and canaries prove it."""
    config = _load(file)
    return config.topology.connector is not None and config.settings.canary.enabled


def split(file: Path) -> Split | None:
    """How requests are divided among pools."""
    return _load(file).split


def change(file: Path, changed: Callable[[ProxyConfig], ProxyConfig]) -> ProxyConfig:
    """Write what a function makes of it, and return that.

    Whoever else changes it waits meanwhile, so that no change is lost.
    """
    new = file.with_suffix(".new")
    try:
        with file.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            config = changed(_load(file))
            new.write_text(dump(config))
            os.replace(new, file)  # the proxy never reads half of it
    except OSError as exc:
        raise RunDirectoryError(f"cannot change {file}: {exc.strerror}") from exc
    return config


def _load(file: Path) -> ProxyConfig:
    try:
        return load(file)
    except ConfigError as exc:
        raise RunDirectoryError(str(exc)) from exc
